#include "reprise/ops/random_uniform.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_random_uniform(std::size_t base) {
  need_elements("random_uniform", "base", base, 2);
}

void random_uniform_cpu(cpu_call& call, read<std::uint64_t> base, write<float> out,
                        std::uint64_t offset) {
  check_random_uniform(base.size());
  const auto count = static_cast<std::int64_t>(out.size());
  const std::uint64_t seed = base[0];
  const std::uint64_t first_draw = base[1] + offset;
  call.parallel_for((count + 3) / 4, 4096, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t draw = first; draw < last; ++draw) {
      const philox_words words = philox(seed, first_draw + static_cast<std::uint64_t>(draw), 0);
      for (std::int64_t i = 4 * draw; i < std::min(4 * draw + 4, count); ++i) {
        out.data()[i] = uniform_of(words.at[i - 4 * draw]);
      }
    }
  });
}

}  // namespace ops

void add_random_uniform(kernel_registry& registry) {
  registry.add(random_uniform,
               {{device_kind::cpu, "generic", ops::random_uniform_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::random_uniform_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
