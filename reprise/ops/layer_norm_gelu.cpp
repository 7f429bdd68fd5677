#include "reprise/ops/layer_norm_gelu.hpp"

#include <algorithm>
#include <cstring>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/norms.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

// Neighbouring elements of a row that are taken at a time: the slots of a sum over a row, the
// columns of one over rows, and two vectors for the exponential.
constexpr std::int64_t side_by_side = 32;
static_assert(side_by_side == row_slots && side_by_side == norm_tile);

struct normed_row {
  pointer_to<const float> x, gain, bias;
  row_stats of;

  // What the norm makes of `count` elements from `begin` on; zeros behind them.
  void form(std::int64_t begin, std::int64_t count, float (&unit)[side_by_side],
            float (&normed)[side_by_side]) const {
    for (std::int64_t j = 0; j < count; ++j) {
      unit[j] = unit_of(x[begin + j], of.mean, of.inverse);
      normed[j] = norm_y(unit[j], gain[begin + j], bias[begin + j]);
    }
    std::fill(normed + count, normed + side_by_side, 0.0f);
  }

  void apply(std::int64_t begin, std::int64_t count, pointer_to<float> to) const {
    float unit[side_by_side];
    float y[side_by_side];
    form(begin, count, unit, y);
    for (std::int64_t at = 0; at < side_by_side; at += 16) {
      math::f32x16 sixteen;
      std::memcpy(&sixteen, y + at, sizeof sixteen);
      sixteen = gelu_of(sixteen);
      std::memcpy(y + at, &sixteen, sizeof sixteen);
    }
    for (std::int64_t j = 0; j < count; ++j) to[begin + j] = y[j];
  }

  // The gradient of what the norm made, from that of what GELU made of it.
  void gradient(std::int64_t begin, std::int64_t count, pointer_to<const float> dy,
                float (&unit)[side_by_side], float (&d)[side_by_side]) const {
    float normed[side_by_side];
    form(begin, count, unit, normed);
    for (std::int64_t j = 0; j < count; ++j) d[j] = dy[begin + j];
    std::fill(d + count, d + side_by_side, 0.0f);
    for (std::int64_t at = 0; at < side_by_side; at += 16) {
      math::f32x16 n;
      math::f32x16 above;
      std::memcpy(&n, normed + at, sizeof n);
      std::memcpy(&above, d + at, sizeof above);
      above = gelu_gradient{}(n, above);
      std::memcpy(d + at, &above, sizeof above);
    }
  }
};

// All of a layer's arguments that its backward reads.
struct normed_rows {
  pointer_to<const float> x, gain, bias, stats, dy;
  std::int64_t rows, width;

  normed_row at(std::int64_t row) const {
    return {x + row * width, gain, bias, {stats[2 * row], stats[2 * row + 1]}};
  }

  // dx of one row; `to` may be its x or its dy.
  void input_grad(std::int64_t row, pointer_to<float> to) const {
    const normed_row here = at(row);
    const auto above = dy + row * width;
    float of_g[row_slots] = {};
    float of_both[row_slots] = {};
    float unit[side_by_side];
    float d[side_by_side];
    for (std::int64_t begin = 0; begin < width; begin += side_by_side) {
      const std::int64_t count = std::min(side_by_side, width - begin);
      here.gradient(begin, count, above, unit, d);
      for (std::int64_t j = 0; j < count; ++j) {
        const float g = d[j] * gain[begin + j];
        of_g[j] += g;
        of_both[j] += g * unit[j];
      }
    }
    const float mean_g = fold_slots<row_slots>(of_g) / static_cast<float>(width);
    const float along = fold_slots<row_slots>(of_both) / static_cast<float>(width);
    for (std::int64_t begin = 0; begin < width; begin += side_by_side) {
      const std::int64_t count = std::min(side_by_side, width - begin);
      here.gradient(begin, count, above, unit, d);
      for (std::int64_t j = 0; j < count; ++j) {
        const float g = d[j] * gain[begin + j];
        to[begin + j] = norm_dx(g, unit[j], here.of.inverse, mean_g, along);
      }
    }
  }

  // Of columns [begin, begin + count): the gain's, then the bias's.
  void weight_sums(std::int64_t begin, std::int64_t count, float (&sums)[2 * norm_tile]) const {
    sum_rows(
        rows,
        [&](std::int64_t row, float(&slot)[2 * norm_tile]) {
          float unit[side_by_side];
          float d[side_by_side];
          at(row).gradient(begin, count, dy + row * width, unit, d);
          for (std::int64_t j = 0; j < count; ++j) {
            slot[j] += d[j] * unit[j];
            slot[norm_tile + j] += d[j];
          }
        },
        sums);
  }
};

std::int64_t row_grain(std::int64_t width) {
  return std::max<std::int64_t>(1, 2048 / width);
}

}  // namespace

std::int64_t layer_norm_gelu_rows(std::size_t x, std::size_t gain, std::size_t bias, std::size_t y,
                                  std::size_t stats, std::int64_t width) {
  constexpr const char* op = "layer_norm_gelu_saving";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "the bias", bias, static_cast<std::size_t>(width));
  need_elements(op, "y", y, x);
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(rows));
  return rows;
}

std::int64_t layer_norm_gelu_input_grad_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                             std::size_t stats, std::size_t dy, std::size_t dx,
                                             std::int64_t width) {
  constexpr const char* op = "layer_norm_gelu_input_grad";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "the bias", bias, static_cast<std::size_t>(width));
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(rows));
  need_elements(op, "dy", dy, x);
  need_elements(op, "dx", dx, x);
  return rows;
}

std::int64_t layer_norm_gelu_weight_grad_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                              std::size_t stats, std::size_t dy, std::size_t dgain,
                                              std::size_t dbias, std::size_t gain_rule,
                                              std::size_t bias_rule, std::int64_t width) {
  constexpr const char* op = "layer_norm_gelu_weight_grad";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_at_most(op, "the width", width, most_norm_columns);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "the bias", bias, static_cast<std::size_t>(width));
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(rows));
  need_elements(op, "dy", dy, x);
  need_elements(op, "dgain", dgain, static_cast<std::size_t>(width));
  need_elements(op, "dbias", dbias, static_cast<std::size_t>(width));
  need_elements(op, "the gain's rule", gain_rule, 1);
  need_elements(op, "the bias's rule", bias_rule, 1);
  return rows;
}

void layer_norm_gelu_saving_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> bias,
                                write<float> y, write<float> stats, std::int64_t width, float eps) {
  const std::int64_t rows =
      layer_norm_gelu_rows(x.size(), gain.size(), bias.size(), y.size(), stats.size(), width);
  call.parallel_for(rows, row_grain(width), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const auto from = x.data() + row * width;
      const normed_row here{from, gain.data(), bias.data(), stats_of(from, width, eps)};
      for (std::int64_t begin = 0; begin < width; begin += side_by_side) {
        here.apply(begin, std::min(side_by_side, width - begin), y.data() + row * width);
      }
      stats.data()[2 * row] = here.of.mean;
      stats.data()[2 * row + 1] = here.of.inverse;
    }
  });
}

void layer_norm_gelu_input_grad_cpu(cpu_call& call, read<float> x, read<float> gain,
                                    read<float> bias, read<float> stats, read<float> dy,
                                    write<float> dx, std::int64_t width) {
  const std::int64_t rows = layer_norm_gelu_input_grad_rows(
      x.size(), gain.size(), bias.size(), stats.size(), dy.size(), dx.size(), width);
  const normed_rows all{x.data(), gain.data(), bias.data(), stats.data(), dy.data(), rows, width};
  call.parallel_for(rows, row_grain(width), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      all.input_grad(row, dx.data() + row * width);
    }
  });
}

void layer_norm_gelu_weight_grad_cpu(cpu_call& call, read<float> x, read<float> gain,
                                     read<float> bias, read<float> stats, read<float> dy,
                                     inout<float> dgain, inout<float> dbias,
                                     read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                     std::int64_t width) {
  const std::int64_t rows = layer_norm_gelu_weight_grad_rows(
      x.size(), gain.size(), bias.size(), stats.size(), dy.size(), dgain.size(), dbias.size(),
      gain_rule.size(), bias_rule.size(), width);
  const normed_rows all{x.data(), gain.data(), bias.data(), stats.data(), dy.data(), rows, width};
  const gradient_rule for_gain = gradient_rule_of(gain_rule[0]);
  const gradient_rule for_bias = gradient_rule_of(bias_rule[0]);
  if (for_gain == gradient_rule::leave && for_bias == gradient_rule::leave) return;
  const std::int64_t grain =
      std::max<std::int64_t>(1, 2048 / (norm_tile * std::max<std::int64_t>(1, rows)));
  call.parallel_for((width + norm_tile - 1) / norm_tile, grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) {
                        const std::int64_t begin = at * norm_tile;
                        const std::int64_t count = std::min(norm_tile, width - begin);
                        float sums[2 * norm_tile];
                        all.weight_sums(begin, count, sums);
                        put_columns(for_gain, sums, begin, count, dgain.data());
                        put_columns(for_bias, sums + norm_tile, begin, count, dbias.data());
                      }
                    });
}

}  // namespace ops

namespace {

// A gain's sum and a bias's for each column of each chunk, where they take two launches.
std::size_t gelu_sums_workspace(read<float> x, read<float>, read<float>, read<float>, read<float>,
                                inout<float>, inout<float>, read<std::int32_t>, read<std::int32_t>,
                                std::int64_t width) {
  if (width < 1) return 0;  // asked before the body, which refuses it
  const std::int64_t chunks = ops::norm_chunks(static_cast<std::int64_t>(x.size()) / width);
  if (chunks <= ops::few_norm_chunks) return 0;
  return static_cast<std::size_t>(2 * chunks * width) * sizeof(float);
}

}  // namespace

void add_layer_norm_gelu(kernel_registry& registry) {
  registry.add(layer_norm_gelu_saving,
               {{device_kind::cpu, "generic", ops::layer_norm_gelu_saving_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::layer_norm_gelu_saving_cuda)}});
  registry.add(
      layer_norm_gelu_input_grad,
      {{device_kind::cpu, "generic", ops::layer_norm_gelu_input_grad_cpu},
       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::layer_norm_gelu_input_grad_cuda)}});
  registry.add(layer_norm_gelu_weight_grad,
               {{device_kind::cpu, "generic", ops::layer_norm_gelu_weight_grad_cpu},
                {.device = device_kind::cuda,
                 .arch = "sm_80",
                 .body = REPRISE_CUDA_BODY(ops::layer_norm_gelu_weight_grad_cuda),
                 .workspace_bytes = gelu_sums_workspace}});
}

}  // namespace reprise::REPRISE_BODIES
