#include "reprise/ops/batch_norm_grad.hpp"

#include <algorithm>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/norms.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

struct column_sums {
  pointer_to<const float> x, stats, dy;
  pointer_to<float> sums, dgain, dbias;
  gradient_rule gain_rule, bias_rule;
  std::int64_t rows, width;

  // Columns [begin, begin + count), at most a tile of them.
  void columns(std::int64_t begin, std::int64_t count) const {
    float means[norm_tile];
    float inverses[norm_tile];
    for (std::int64_t j = 0; j < count; ++j) {
      means[j] = stats[begin + j];
      inverses[j] = stats[width + begin + j];
    }
    float found[2 * norm_tile];  // of dy * unit, then of dy
    sum_rows(
        rows,
        [&](std::int64_t row, float(&slot)[2 * norm_tile]) {
          const auto values = x + row * width + begin;
          const auto above = dy + row * width + begin;
          for (std::int64_t j = 0; j < count; ++j) {
            const float g = above[j];
            slot[j] += g * unit_of(values[j], means[j], inverses[j]);
            slot[norm_tile + j] += g;
          }
        },
        found);
    put_columns(gradient_rule::write, found, begin, count, sums);
    put_columns(gradient_rule::write, found + norm_tile, width + begin, count, sums);
    put_columns(gain_rule, found, begin, count, dgain);
    put_columns(bias_rule, found + norm_tile, begin, count, dbias);
  }
};

// dx[i, j] = slope(i, j) for each element, row by row.
template <class Slope>
void each_slope(const cpu_call& call, std::int64_t rows, write<float> dx, std::int64_t width,
                const Slope& slope) {
  call.parallel_for(rows, std::max<std::int64_t>(1, 8192 / width),
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t row = first; row < last; ++row) {
                        const auto to = dx.data() + row * width;
                        for (std::int64_t j = 0; j < width; ++j) to[j] = slope(row * width + j, j);
                      }
                    });
}

gradient_rule rule_in(read<std::int32_t> word) {
  return word.size() == 0 ? gradient_rule::leave : gradient_rule_of(word[0]);
}

}  // namespace

std::int64_t batch_norm_weight_grad_rows(std::size_t x, std::size_t stats, std::size_t dy,
                                         std::size_t sums, std::size_t dgain, std::size_t dbias,
                                         std::size_t gain_rule, std::size_t bias_rule,
                                         std::int64_t width) {
  constexpr const char* op = "batch_norm_weight_grad";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_at_most(op, "the width", width, most_norm_columns);
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(width));
  need_elements(op, "dy", dy, x);
  need_elements(op, "sums", sums, 2 * static_cast<std::size_t>(width));
  const bool trains = dgain + dbias + gain_rule + bias_rule != 0;
  need_elements(op, "dgain", dgain, trains ? static_cast<std::size_t>(width) : 0);
  need_elements(op, "dbias", dbias, trains ? static_cast<std::size_t>(width) : 0);
  need_elements(op, "the gain's rule", gain_rule, trains ? 1 : 0);
  need_elements(op, "the bias's rule", bias_rule, trains ? 1 : 0);
  return rows;
}

std::int64_t batch_norm_input_grad_rows(std::size_t x, std::size_t gain, std::size_t stats,
                                        std::size_t sums, std::size_t dy, std::size_t dx,
                                        std::int64_t width) {
  constexpr const char* op = "batch_norm_input_grad";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_at_most(op, "the width", width, most_norm_columns);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(width));
  need_elements(op, "sums", sums, 2 * static_cast<std::size_t>(width));
  need_elements(op, "dy", dy, x);
  need_elements(op, "dx", dx, x);
  return rows;
}

std::int64_t frozen_batch_norm_grad_rows(std::size_t gain, std::size_t running, std::size_t dy,
                                         std::size_t dx, std::int64_t width) {
  constexpr const char* op = "frozen_batch_norm_grad";
  const std::int64_t rows = whole_rows(op, "dy", dy, width);
  need_at_most(op, "the width", width, most_norm_columns);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "the running statistics", running, 2 * static_cast<std::size_t>(width));
  need_elements(op, "dx", dx, dy);
  return rows;
}

void batch_norm_weight_grad_cpu(cpu_call& call, read<float> x, read<float> stats, read<float> dy,
                                write<float> sums, inout<float> dgain, inout<float> dbias,
                                read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                std::int64_t width) {
  const std::int64_t rows =
      batch_norm_weight_grad_rows(x.size(), stats.size(), dy.size(), sums.size(), dgain.size(),
                                  dbias.size(), gain_rule.size(), bias_rule.size(), width);
  const column_sums all{x.data(),     stats.data(), dy.data(),          sums.data(),
                        dgain.data(), dbias.data(), rule_in(gain_rule), rule_in(bias_rule),
                        rows,         width};
  const std::int64_t grain =
      std::max<std::int64_t>(1, 16384 / (norm_tile * std::max<std::int64_t>(1, rows)));
  call.parallel_for((width + norm_tile - 1) / norm_tile, grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) {
                        all.columns(at * norm_tile, std::min(norm_tile, width - at * norm_tile));
                      }
                    });
}

void batch_norm_input_grad_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> stats,
                               read<float> sums, read<float> dy, write<float> dx,
                               std::int64_t width) {
  const std::int64_t rows = batch_norm_input_grad_rows(x.size(), gain.size(), stats.size(),
                                                       sums.size(), dy.size(), dx.size(), width);
  struct column {
    float mean, inverse, scale, mean_g, along;
  };
  std::vector<column> columns(static_cast<std::size_t>(width));
  const auto m = static_cast<float>(rows);
  for (std::int64_t j = 0; j < width; ++j) {
    const float inverse = stats.data()[width + j];
    columns[static_cast<std::size_t>(j)] = {stats.data()[j], inverse, gain.data()[j] * inverse,
                                            sums.data()[width + j] / m, sums.data()[j] / m};
  }
  each_slope(call, rows, dx, width, [&](std::int64_t at, std::int64_t j) {
    const column& of = columns[static_cast<std::size_t>(j)];
    return norm_dx(dy.data()[at], unit_of(x.data()[at], of.mean, of.inverse), of.scale, of.mean_g,
                   of.along);
  });
}

void frozen_batch_norm_grad_cpu(cpu_call& call, read<float> gain, read<float> running,
                                read<float> dy, write<float> dx, std::int64_t width, float eps) {
  const std::int64_t rows =
      frozen_batch_norm_grad_rows(gain.size(), running.size(), dy.size(), dx.size(), width);
  std::vector<float> scales(static_cast<std::size_t>(width));
  for (std::int64_t j = 0; j < width; ++j) {
    scales[static_cast<std::size_t>(j)] =
        gain.data()[j] * inverse_deviation(running.data()[width + j], eps);
  }
  each_slope(call, rows, dx, width, [&](std::int64_t at, std::int64_t j) {
    return dy.data()[at] * scales[static_cast<std::size_t>(j)];
  });
}

}  // namespace ops

namespace {

// Two sums for each column of each chunk.
std::size_t sums_workspace(read<float> x, read<float>, read<float>, write<float>, inout<float>,
                           inout<float>, read<std::int32_t>, read<std::int32_t>,
                           std::int64_t width) {
  if (width < 1) return 0;  // asked before the body, which refuses it
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / width;
  return static_cast<std::size_t>(2 * ops::norm_chunks(rows) * width) * sizeof(float);
}

}  // namespace

void add_batch_norm_grad(kernel_registry& registry) {
  registry.add(batch_norm_weight_grad,
               {{device_kind::cpu, "generic", ops::batch_norm_weight_grad_cpu},
                {.device = device_kind::cuda,
                 .arch = "sm_80",
                 .body = REPRISE_CUDA_BODY(ops::batch_norm_weight_grad_cuda),
                 .workspace_bytes = sums_workspace}});
  registry.add(batch_norm_input_grad,
               {{device_kind::cpu, "generic", ops::batch_norm_input_grad_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::batch_norm_input_grad_cuda)}});
  registry.add(frozen_batch_norm_grad,
               {{device_kind::cpu, "generic", ops::frozen_batch_norm_grad_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::frozen_batch_norm_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
