#include "reprise/ops/layer_norm_grad.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/norms.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

struct weight_grad {
  pointer_to<const float> x, stats, dy;
  pointer_to<float> dgain, dbias;
  gradient_rule gain_rule, bias_rule;
  std::int64_t rows, width;

  // Columns [begin, begin + count), at most a tile of them.
  void columns(std::int64_t begin, std::int64_t count) const {
    float sums[2 * norm_tile];  // of the gain's columns, then of the bias's
    sum_rows(
        rows,
        [&](std::int64_t row, float(&slot)[2 * norm_tile]) {
          const auto values = x + row * width + begin;
          const auto above = dy + row * width + begin;
          const float mean = stats[2 * row];
          const float inverse = stats[2 * row + 1];
          for (std::int64_t j = 0; j < count; ++j) {
            const float g = above[j];
            slot[j] += g * unit_of(values[j], mean, inverse);
            slot[norm_tile + j] += g;
          }
        },
        sums);
    put_columns(gain_rule, sums, begin, count, dgain);
    put_columns(bias_rule, sums + norm_tile, begin, count, dbias);
  }
};

}  // namespace

std::int64_t layer_norm_input_grad_rows(std::size_t x, std::size_t gain, std::size_t stats,
                                        std::size_t dy, std::size_t dx, std::int64_t width) {
  constexpr const char* op = "layer_norm_input_grad";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(rows));
  need_elements(op, "dy", dy, x);
  need_elements(op, "dx", dx, x);
  return rows;
}

std::int64_t layer_norm_weight_grad_rows(std::size_t x, std::size_t stats, std::size_t dy,
                                         std::size_t dgain, std::size_t dbias,
                                         std::size_t gain_rule, std::size_t bias_rule,
                                         std::int64_t width) {
  constexpr const char* op = "layer_norm_weight_grad";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_at_most(op, "the width", width, most_norm_columns);
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(rows));
  need_elements(op, "dy", dy, x);
  need_elements(op, "dgain", dgain, static_cast<std::size_t>(width));
  need_elements(op, "dbias", dbias, static_cast<std::size_t>(width));
  need_elements(op, "the gain's rule", gain_rule, 1);
  need_elements(op, "the bias's rule", bias_rule, 1);
  return rows;
}

void layer_norm_input_grad_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> stats,
                               read<float> dy, write<float> dx, std::int64_t width) {
  const std::int64_t rows =
      layer_norm_input_grad_rows(x.size(), gain.size(), stats.size(), dy.size(), dx.size(), width);
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / width);
  const auto count = static_cast<float>(width);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const auto values = x.data() + row * width;
      const auto above = dy.data() + row * width;
      const auto to = dx.data() + row * width;
      const float mean = stats.data()[2 * row];
      const float inverse = stats.data()[2 * row + 1];
      const auto g = [&](std::int64_t j) { return above[j] * gain.data()[j]; };
      const auto unit = [&](std::int64_t j) { return unit_of(values[j], mean, inverse); };
      const float mean_g = slot_sum<row_slots>(width, g) / count;
      const float along =
          slot_sum<row_slots>(width, [&](std::int64_t j) { return g(j) * unit(j); }) / count;
      for (std::int64_t j = 0; j < width; ++j)
        to[j] = norm_dx(g(j), unit(j), inverse, mean_g, along);
    }
  });
}

void layer_norm_weight_grad_cpu(cpu_call& call, read<float> x, read<float> stats, read<float> dy,
                                inout<float> dgain, inout<float> dbias,
                                read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                std::int64_t width) {
  const std::int64_t rows =
      layer_norm_weight_grad_rows(x.size(), stats.size(), dy.size(), dgain.size(), dbias.size(),
                                  gain_rule.size(), bias_rule.size(), width);
  const weight_grad sums{x.data(),
                         stats.data(),
                         dy.data(),
                         dgain.data(),
                         dbias.data(),
                         gradient_rule_of(gain_rule[0]),
                         gradient_rule_of(bias_rule[0]),
                         rows,
                         width};
  if (sums.gain_rule == gradient_rule::leave && sums.bias_rule == gradient_rule::leave) return;
  const std::int64_t grain =
      std::max<std::int64_t>(1, 16384 / (norm_tile * std::max<std::int64_t>(1, rows)));
  call.parallel_for((width + norm_tile - 1) / norm_tile, grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) {
                        sums.columns(at * norm_tile, std::min(norm_tile, width - at * norm_tile));
                      }
                    });
}

}  // namespace ops

namespace {

// A gain's sum and a bias's for each column of each chunk.
std::size_t weight_grad_workspace(read<float> x, read<float>, read<float>, inout<float>,
                                  inout<float>, read<std::int32_t>, read<std::int32_t>,
                                  std::int64_t width) {
  if (width < 1) return 0;  // asked before the body, which refuses it
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / width;
  return static_cast<std::size_t>(2 * ops::norm_chunks(rows) * width) * sizeof(float);
}

}  // namespace

void add_layer_norm_grad(kernel_registry& registry) {
  registry.add(layer_norm_input_grad,
               {{device_kind::cpu, "generic", ops::layer_norm_input_grad_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::layer_norm_input_grad_cuda)}});
  registry.add(layer_norm_weight_grad,
               {{device_kind::cpu, "generic", ops::layer_norm_weight_grad_cpu},
                {.device = device_kind::cuda,
                 .arch = "sm_80",
                 .body = REPRISE_CUDA_BODY(ops::layer_norm_weight_grad_cuda),
                 .workspace_bytes = weight_grad_workspace}});
}

}  // namespace reprise::REPRISE_BODIES
