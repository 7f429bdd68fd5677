#include "reprise/ops/batch_norm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/device/elements.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/norms.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

using tile_sums = float[norm_tile];

// Neighbouring columns, at most a tile of them.
struct column_tile {
  pointer_to<const float> x;  // of the first row
  std::int64_t rows, width, count;

  template <class Each>
  void each_in(std::int64_t row, const Each& each) const {
    const auto values = x + row * width;
    for (std::int64_t j = 0; j < count; ++j) each(j, values[j]);
  }

  // Their means, and their squares about them.
  void moments(tile_sums& means, tile_sums& squares) const {
    struct chunk_sums {
      tile_sums sum, squares;
    };
    std::vector<chunk_sums> chunks(static_cast<std::size_t>(norm_chunks(rows)));
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const std::int64_t first = static_cast<std::int64_t>(c) * norm_chunk_rows;
      const auto of = static_cast<float>(rows_of_chunk(first, rows));
      sum_chunk(
          first, rows,
          [&](std::int64_t row, tile_sums& slot) {
            each_in(row, [&](std::int64_t j, float value) { slot[j] += value; });
          },
          chunks[c].sum);
      tile_sums own;
      for (std::int64_t j = 0; j < norm_tile; ++j) own[j] = chunks[c].sum[j] / of;
      sum_chunk(
          first, rows,
          [&](std::int64_t row, tile_sums& slot) {
            each_in(row, [&](std::int64_t j, float value) {
              const float off = value - own[j];
              slot[j] += off * off;
            });
          },
          chunks[c].squares);
    }
    const auto chunk_at = [&](std::int64_t c) -> const chunk_sums& {
      return chunks[static_cast<std::size_t>(c)];
    };
    slot_sums<row_slots>(
        norm_chunks(rows),
        [&](std::int64_t c, tile_sums& slot) {
          for (std::int64_t j = 0; j < norm_tile; ++j) slot[j] += chunk_at(c).sum[j];
        },
        means);
    for (float& mean : means) mean /= static_cast<float>(rows);
    slot_sums<row_slots>(
        norm_chunks(rows),
        [&](std::int64_t c, tile_sums& slot) {
          const auto of = static_cast<float>(rows_of_chunk(c * norm_chunk_rows, rows));
          for (std::int64_t j = 0; j < norm_tile; ++j) {
            slot[j] += squares_of_chunk(chunk_at(c).sum[j], chunk_at(c).squares[j], of, means[j]);
          }
        },
        squares);
  }
};

// `count` columns of all rows, from the first of each on.
void norm_rows(pointer_to<const float> x, const float* means, const float* inverses,
               pointer_to<const float> gain, pointer_to<const float> bias, pointer_to<float> y,
               std::int64_t rows, std::int64_t width, std::int64_t count) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto from = x + row * width;
    const auto to = y + row * width;
    for (std::int64_t j = 0; j < count; ++j) {
      to[j] = norm_y(unit_of(from[j], means[j], inverses[j]), gain[j], bias[j]);
    }
  }
}

}  // namespace

std::int64_t batch_norm_rows(std::size_t x, std::size_t gain, std::size_t bias, std::size_t running,
                             std::size_t y, std::size_t stats, std::int64_t width) {
  constexpr const char* op = "batch_norm";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_at_most(op, "the width", width, most_norm_columns);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "the bias", bias, static_cast<std::size_t>(width));
  need_elements(op, "the running statistics", running, 2 * static_cast<std::size_t>(width));
  need_elements(op, "y", y, x);
  need_elements(op, "stats", stats, 2 * static_cast<std::size_t>(width));
  if (rows < 2) {
    throw usage_error{fmt::format(
        "{}: x has {} rows, and a variance is of 2 at least; give more, or freeze the statistics",
        op, rows)};
  }
  return rows;
}

std::int64_t frozen_batch_norm_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                    std::size_t running, std::size_t y, std::int64_t width) {
  constexpr const char* op = "frozen_batch_norm";
  const std::int64_t rows = whole_rows(op, "x", x, width);
  need_at_most(op, "the width", width, most_norm_columns);
  need_elements(op, "the gain", gain, static_cast<std::size_t>(width));
  need_elements(op, "the bias", bias, static_cast<std::size_t>(width));
  need_elements(op, "the running statistics", running, 2 * static_cast<std::size_t>(width));
  need_elements(op, "y", y, x);
  return rows;
}

void batch_norm_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> bias,
                    inout<float> running, write<float> y, write<float> stats, std::int64_t width,
                    float eps, float momentum) {
  const std::int64_t rows = batch_norm_rows(x.size(), gain.size(), bias.size(), running.size(),
                                            y.size(), stats.size(), width);
  const auto m = static_cast<float>(rows);
  const auto tile_at = [&](std::int64_t begin) {
    const std::int64_t count = std::min(norm_tile, width - begin);
    tile_sums means;
    tile_sums squares;
    column_tile{x.data() + begin, rows, width, count}.moments(means, squares);
    tile_sums inverses;
    for (std::int64_t j = 0; j < count; ++j) {
      const auto mean_at = running.data() + begin + j;
      const auto variance_at = mean_at + width;
      const float old_mean = *mean_at;
      const float old_variance = *variance_at;
      *mean_at = moved_towards(old_mean, means[j], momentum);
      *variance_at = moved_towards(old_variance, squares[j] / (m - 1.0f), momentum);
      inverses[j] = inverse_deviation(squares[j] / m, eps);
      stats.data()[begin + j] = means[j];
      stats.data()[width + begin + j] = inverses[j];
    }
    norm_rows(x.data() + begin, means, inverses, gain.data() + begin, bias.data() + begin,
              y.data() + begin, rows, width, count);
  };
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (norm_tile * rows));
  call.parallel_for((width + norm_tile - 1) / norm_tile, grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) tile_at(at * norm_tile);
                    });
}

void frozen_batch_norm_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> bias,
                           read<float> running, write<float> y, std::int64_t width, float eps) {
  const std::int64_t rows =
      frozen_batch_norm_rows(x.size(), gain.size(), bias.size(), running.size(), y.size(), width);
  std::vector<float> means(static_cast<std::size_t>(width));
  std::vector<float> inverses(means.size());
  read_elements<const float>(running.data(), means.size(), means.data());
  for (std::int64_t j = 0; j < width; ++j) {
    inverses[static_cast<std::size_t>(j)] = inverse_deviation(running.data()[width + j], eps);
  }
  call.parallel_for(
      rows, std::max<std::int64_t>(1, 8192 / width), [&](std::int64_t first, std::int64_t last) {
        norm_rows(x.data() + first * width, means.data(), inverses.data(), gain.data(), bias.data(),
                  y.data() + first * width, last - first, width, width);
      });
}

}  // namespace ops

namespace {

// The sum and the squares of each column of each chunk.
std::size_t moments_workspace(read<float> x, read<float>, read<float>, inout<float>, write<float>,
                              write<float>, std::int64_t width, float, float) {
  if (width < 1) return 0;  // asked before the body, which refuses it
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / width;
  return static_cast<std::size_t>(2 * ops::norm_chunks(rows) * width) * sizeof(float);
}

}  // namespace

void add_batch_norm(kernel_registry& registry) {
  registry.add(batch_norm, {{device_kind::cpu, "generic", ops::batch_norm_cpu},
                            {.device = device_kind::cuda,
                             .arch = "sm_80",
                             .body = REPRISE_CUDA_BODY(ops::batch_norm_cuda),
                             .workspace_bytes = moments_workspace}});
  registry.add(frozen_batch_norm,
               {{device_kind::cpu, "generic", ops::frozen_batch_norm_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::frozen_batch_norm_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
