#include "reprise/tap/bring_plan.hpp"

#include <algorithm>
#include <atomic>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::REPRISE_BODIES {

void bring_plan_cpu(cpu_call&, read<std::uint64_t> slots, read<std::uint64_t> plans,
                    write<std::uint64_t> words, inout<std::uint64_t> replays,
                    write<std::uint64_t> consumed, std::uint64_t words_per_plan) {
  const std::uint64_t turn = replays[0];
  const std::uint64_t said = slots[turn % slots.size()];
  const std::uint64_t most = std::min<std::uint64_t>(words_per_plan, words.size());
  const std::uint64_t count = std::min(words_to_bring(said), most);
  const std::uint64_t from = index_to_bring(said) * words_per_plan;
  copy_elements(plans.data() + from, count, words.data());
  replays[0] = turn + 1;
  store_atomically(consumed.data(), turn + 1, std::memory_order_release);
}

void add_bring_plan(kernel_registry& registry) {
  registry.add(bring_plan, {{device_kind::cpu, "generic", bring_plan_cpu},
                            {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(bring_plan_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
