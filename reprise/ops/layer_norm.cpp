#include "reprise/ops/layer_norm.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/norms.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

// Both kernels; `saved(row, stats)` is told of each row.
template <class Saved>
void norm_rows(const cpu_call& call, std::int64_t rows, read<float> x, read<float> gain,
               read<float> bias, write<float> y, float eps, const Saved& saved) {
  const auto width = static_cast<std::int64_t>(gain.size());
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / width);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const auto from = x.data() + row * width;
      const auto to = y.data() + row * width;
      const row_stats of = stats_of(from, width, eps);
      for (std::int64_t j = 0; j < width; ++j) {
        to[j] = (((from[j] - of.mean) * of.inverse) * gain.data()[j]) + bias.data()[j];
      }
      saved(row, of);
    }
  });
}

}  // namespace

std::int64_t layer_norm_rows(const char* op, std::size_t x, std::size_t gain, std::size_t bias,
                             std::size_t y, std::int64_t width) {
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "the bias", bias, static_cast<std::size_t>(width));
  need_elements(op, "y", y, x);
  return rows;
}

std::int64_t layer_norm_saving_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                    std::size_t y, std::size_t stats, std::int64_t width) {
  const std::int64_t rows = layer_norm_rows("layer_norm_saving", x, gain, bias, y, width);
  need_elements("layer_norm_saving", "stats", stats, 2 * static_cast<std::size_t>(rows));
  return rows;
}

void layer_norm_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> bias,
                    write<float> y, std::int64_t width, float eps) {
  const std::int64_t rows =
      layer_norm_rows("layer_norm", x.size(), gain.size(), bias.size(), y.size(), width);
  norm_rows(call, rows, x, gain, bias, y, eps, [](std::int64_t, const row_stats&) {});
}

void layer_norm_saving_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> bias,
                           write<float> y, write<float> stats, std::int64_t width, float eps) {
  const std::int64_t rows =
      layer_norm_saving_rows(x.size(), gain.size(), bias.size(), y.size(), stats.size(), width);
  norm_rows(call, rows, x, gain, bias, y, eps, [&](std::int64_t row, const row_stats& of) {
    stats.data()[2 * row] = of.mean;
    stats.data()[2 * row + 1] = of.inverse;
  });
}

}  // namespace ops

void add_layer_norm(kernel_registry& registry) {
  registry.add(layer_norm, {{device_kind::cpu, "generic", ops::layer_norm_cpu},
                            {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::layer_norm_cuda)}});
  registry.add(layer_norm_saving,
               {{device_kind::cpu, "generic", ops::layer_norm_saving_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::layer_norm_saving_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
