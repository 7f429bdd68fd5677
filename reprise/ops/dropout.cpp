#include "reprise/ops/dropout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

float dropout_factor(std::size_t x, std::size_t base, std::size_t y, float rate) {
  if (!(rate >= 0.0f && rate < 1.0f)) {
    throw usage_error{
        fmt::format("dropout: a rate of {}; give one of at least 0 and below 1", rate)};
  }
  need_elements("dropout", "base", base, 2);
  need_elements("dropout", "y", y, x);
  return 1.0f / (1.0f - rate);
}

void dropout_cpu(cpu_call& call, read<float> x, read<std::uint64_t> base, write<float> y,
                 std::uint64_t offset, float rate) {
  const float factor = dropout_factor(x.size(), base.size(), y.size(), rate);
  const auto count = static_cast<std::int64_t>(x.size());
  const std::uint64_t seed = base[0];
  const std::uint64_t first_draw = base[1] + offset;
  call.parallel_for((count + 3) / 4, 4096, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t draw = first; draw < last; ++draw) {
      const philox_words words = philox(seed, first_draw + static_cast<std::uint64_t>(draw), 0);
      for (std::int64_t i = 4 * draw; i < std::min(4 * draw + 4, count); ++i) {
        y.data()[i] = kept_or_zero(x.data()[i], words.at[i - 4 * draw], rate, factor);
      }
    }
  });
}

}  // namespace ops

void add_dropout(kernel_registry& registry) {
  registry.add(dropout, {{device_kind::cpu, "generic", ops::dropout_cpu},
                         {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::dropout_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
