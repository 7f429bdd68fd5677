#include "reprise/grad/bring.hpp"

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::REPRISE_BODIES {

void check_bring(std::size_t from, std::size_t to) {
  if (from == to) return;
  throw usage_error{"bring: `from` has " + std::to_string(from) + " bytes and `to` " +
                    std::to_string(to) + "; give as many"};
}

void bring_cpu(cpu_call&, read<std::uint8_t> from, write<std::uint8_t> to) {
  check_bring(from.size(), to.size());
  const auto there = to.followed();
  if (there.place() == nullptr) return;
  copy_elements(from.followed().data(), there.size(), there.data());
}

void add_bring(kernel_registry& registry) {
  registry.add(bring, {{device_kind::cpu, "generic", bring_cpu, "default", nullptr, true},
                       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(bring_cuda), "default",
                        nullptr, true}});
}

}  // namespace reprise::REPRISE_BODIES
