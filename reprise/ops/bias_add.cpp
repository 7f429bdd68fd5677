#include "reprise/ops/bias_add.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

std::int64_t bias_add_rows(std::size_t x, std::size_t bias, std::size_t out) {
  const std::int64_t rows = whole_rows("bias_add", "x", x, static_cast<std::int64_t>(bias));
  need_elements("bias_add", "out", out, x);
  return rows;
}

void bias_add_cpu(cpu_call& call, read<float> x, read<float> bias, write<float> out) {
  const std::int64_t rows = bias_add_rows(x.size(), bias.size(), out.size());
  const auto width = static_cast<std::int64_t>(bias.size());
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / width);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const auto from = x.data() + row * width;
      const auto to = out.data() + row * width;
      for (std::int64_t j = 0; j < width; ++j) to[j] = from[j] + bias.data()[j];
    }
  });
}

}  // namespace ops

void add_bias_add(kernel_registry& registry) {
  registry.add(bias_add, {{device_kind::cpu, "generic", ops::bias_add_cpu},
                          {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::bias_add_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
