#include "reprise/sdm/forward.hpp"

#include <algorithm>

#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/sdm/chunk_place.hpp"
#include "reprise/sdm/chunk_views.hpp"
#include "reprise/sdm/row_part.hpp"
#include "reprise/sdm/saved_row.hpp"
#include "reprise/sdm/triangle.hpp"

namespace reprise::REPRISE_BODIES {

namespace sdm {

namespace {

template <class B, class X>
struct run_writer {
  chunk_place c;
  saved_rows format;
  std::int64_t saved_stride;  // 0: nothing is saved
  pointer_to<const std::int32_t> order, runs, rows, written;
  pointer_to<const X> tail, keep, beta, errors;
  pointer_to<B> bank;
  pointer_to<std::uint8_t> saved;

  void operator()(std::int64_t p, std::int64_t r) const {
    const std::int64_t at = c.of_stream(p) * c.events;
    const auto bounds = runs + (at + c.of_stream(p) + r);
    const std::int32_t begin = bounds[0];
    const std::int32_t end = bounds[1];
    const std::int64_t where = begin == end ? -1 : written[at + r];
    if (where < 0) return;
    const auto row = bank + rows[at + r] * c.width;
    const auto to = saved + (c.of_stream(p) * c.chunk * c.writes + where) * saved_stride;
    const auto save = [&] {
      if (saved_stride != 0) save_row<B>(format, c.width, row, to);
    };
    if (!REPRISE_MUTANT(sdm_saves_the_row_that_was_written)) save();
    each_part(c.width, [&](std::int64_t column, std::int64_t columns) {
      X sum[part_columns];
      read_widened<B>(row + column, columns, sum);
      const X kept = keep[at + r];
      for (std::int64_t j = 0; j < columns; ++j) sum[j] = kept * sum[j];
      for (std::int32_t i = begin; i < end; ++i) {
        const std::int32_t event = order[at + i];
        if (!c.is_write(event)) continue;
        const std::int64_t token = c.token(p, c.token_of(event));
        const X by = tail[at + event];
        const X strength = beta[token];
        X error[part_columns];
        read_part<X>(errors + (token * c.width + column), columns, error);
        for (std::int64_t j = 0; j < columns; ++j) sum[j] += by * (strength * error[j]);
      }
      store_part<B>(sum, columns, row + column);
    });
    if (REPRISE_MUTANT(sdm_saves_the_row_that_was_written)) save();
  }
};

}  // namespace

template <class B, class X>
void recall_cpu(cpu_call& call, read<B> bank, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                read<X> head, read<X> v, write<X> errors, write<X> readings, sdm_sizes sizes,
                std::int64_t n) {
  check_recall(sizes, n, bank, k_idx, q_idx, head, v, errors, readings);
  const chunk_place c{sizes, n};
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / (c.token_events() * c.width));
  call.parallel_for(c.streams * c.count, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t p = i / c.count;
      const auto t = static_cast<std::int32_t>(i % c.count);
      const std::int64_t token = c.token(p, t);
      const auto heads =
          head.data() + (c.of_stream(p) * c.events + std::int64_t{t} * c.token_events());
      each_part(c.width, [&](std::int64_t column, std::int64_t columns) {
        X sum[part_columns];
        X value[part_columns];
        sum_rows<B, X>(c, p, bank.data(), k_idx.data() + token * c.writes, heads, c.writes, column,
                       columns, sum);
        read_part<X>(v.data() + (token * c.width + column), columns, value);
        for (std::int64_t j = 0; j < columns; ++j) value[j] -= sum[j];
        store_part<X>(value, columns, errors.data() + (token * c.width + column));
        sum_rows<B, X>(c, p, bank.data(), q_idx.data() + token * c.reads, heads + c.writes, c.reads,
                       column, columns, sum);
        store_part<X>(sum, columns, readings.data() + (token * c.width + column));
      });
    }
  });
}

// Blocks of rows from the last to the first: an error needs those before it as they were, and no
// other needs it then.
template <class X>
void solve_cpu(cpu_call& call, read<X> inverse, read<X> pairs, read<X> beta, inout<X> errors,
               inout<X> readings, sdm_sizes sizes, std::int64_t n) {
  check_solve(sizes, n, inverse, pairs, beta, errors, readings);
  const chunk_place c{sizes, n};
  each_slice(call, c, [&](std::int64_t p, std::int64_t column, std::int64_t columns) {
    const std::int64_t square = c.of_stream(p) * c.chunk * c.chunk;
    const std::int64_t first = c.token(p, 0);
    const auto error = errors.data() + (first * c.width + column);
    const auto reading = readings.data() + (first * c.width + column);
    const pointer_to<const X> no_strength{};
    X sums[block_rows][slice_columns];
    const std::int64_t blocks = (c.count + block_rows - 1) / block_rows;
    for (std::int64_t i = 0; i < blocks; ++i) {
      const bool forwards = REPRISE_MUTANT(sdm_solves_from_the_first_token);
      const std::int64_t t = (forwards ? i : blocks - 1 - i) * block_rows;
      const std::int64_t rows = std::min(block_rows, c.count - t);
      sum_before<X>(c, inverse.data() + square, no_strength, error, t, rows, columns, sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        store_part<X>(sums[r], columns, error + (t + r) * c.width);
      }
    }
    for (std::int64_t t = 0; t < c.count; t += block_rows) {
      const std::int64_t rows = std::min(block_rows, c.count - t);
      sum_before<X>(c, pairs.data() + square, beta.data() + first, error, t, rows, columns, sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        X before[slice_columns];
        read_part<X>(reading + (t + r) * c.width, columns, before);
        for (std::int64_t j = 0; j < columns; ++j) before[j] += sums[r][j];
        store_part<X>(before, columns, reading + (t + r) * c.width);
      }
    }
  });
}

template <class B, class X>
void write_cpu(cpu_call& call, read<std::int32_t> order, read<std::int32_t> runs,
               read<std::int32_t> rows, read<std::int32_t> written, read<X> tail, read<X> keep,
               read<X> beta, read<X> errors, inout<B> bank, write<std::uint8_t> saved,
               saved_rows format, sdm_sizes sizes, std::int64_t n) {
  check_write(sizes, n, order, runs, rows, written, tail, keep, beta, errors, bank, saved, format);
  const chunk_place c{sizes, n};
  const std::int64_t stride =
      saved.size() == 0 ? 0 : row_bytes(format, c.width, static_cast<std::int64_t>(sizeof(B)));
  const run_writer<B, X> write_run{c,           format,      stride,         order.data(),
                                   runs.data(), rows.data(), written.data(), tail.data(),
                                   keep.data(), beta.data(), errors.data(),  bank.data(),
                                   saved.data()};
  const std::int64_t most = c.most_runs();
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / c.width);
  call.parallel_for(c.streams * most, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) write_run(i / most, i % most);
  });
}

}  // namespace sdm

namespace {

template <class B>
void add_bank_type(kernel_registry& registry) {
  if constexpr (std::is_same_v<B, double>) {
    registry.add(sdm_recall<B>, {{device_kind::cpu, "generic", sdm::recall_cpu<B>}});
    registry.add(sdm_write<B>, {{device_kind::cpu, "generic", sdm::write_cpu<B>}});
    registry.add(sdm_solve<B>, {{device_kind::cpu, "generic", sdm::solve_cpu<B>}});
  } else {
    registry.add(sdm_recall<B>,
                 {{device_kind::cpu, "generic", sdm::recall_cpu<B>},
                  {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::recall_cuda<B>)}});
    registry.add(sdm_write<B>,
                 {{device_kind::cpu, "generic", sdm::write_cpu<B>},
                  {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::write_cuda<B>)}});
  }
}

}  // namespace

void add_sdm_forward(kernel_registry& registry) {
  add_bank_type<float>(registry);
  add_bank_type<bf16>(registry);
  add_bank_type<double>(registry);
  registry.add(sdm_solve<float>,
               {{device_kind::cpu, "generic", sdm::solve_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::solve_cuda<float>)}});
}

}  // namespace reprise::REPRISE_BODIES
