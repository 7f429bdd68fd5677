#include "reprise/sdm/backward.hpp"

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

template <class B, class G, class X>
struct run_rewinder {
  chunk_place c;
  saved_rows format;
  pointer_to<const std::int32_t> order, runs, rows, written;
  pointer_to<const X> head, keep, beta, dy, m, errors;
  pointer_to<const std::uint8_t> saved;
  pointer_to<B> bank;
  pointer_to<G> cotangent;
  pointer_to<X> of_state, of_cotangent, of_both;

  void operator()(std::int64_t p, std::int64_t r) const {
    const std::int64_t at = c.of_stream(p) * c.events;
    const auto bounds = runs + (at + c.of_stream(p) + r);
    if (bounds[0] == bounds[1]) return;
    each_part(c.width, [&](std::int64_t column, std::int64_t columns) {
      rewind_part(p, r, column, columns);
    });
  }

  void rewind_part(std::int64_t p, std::int64_t r, std::int64_t column,
                   std::int64_t columns) const {
    const std::int64_t at = c.of_stream(p) * c.events;
    const std::int64_t parts = parts_of(c.width);
    const std::int64_t part = column / part_columns;
    const auto bounds = runs + (at + c.of_stream(p) + r);
    const std::int64_t row = rows[at + r] * c.width + column;
    X before[part_columns] = {};  // M
    X behind[part_columns] = {};  // G
    X sum[part_columns];
    row_before(p, written[at + r], row, column, columns, before);
    read_widened<G>(cotangent + row, columns, behind);
    of_both[(at + r) * parts + part] = part_dot(behind, before, columns);
    const X kept = keep[at + r];
    for (std::int64_t j = 0; j < columns; ++j) sum[j] = kept * behind[j];

    for (std::int32_t i = bounds[0]; i < bounds[1]; ++i) {
      const std::int32_t event = order[at + i];
      const std::int64_t token = c.token(p, c.token_of(event));
      const auto to = (at + event) * parts + part;
      const X by = head[at + event];
      X value[part_columns];
      if (c.is_write(event)) {
        const X strength = beta[token];
        read_part<X>(errors + (token * c.width + column), columns, value);
        for (std::int64_t j = 0; j < columns; ++j) value[j] = strength * value[j];
        of_cotangent[to] = part_dot(behind, value, columns);
        read_part<X>(m + (token * c.width + column), columns, value);
        for (std::int64_t j = 0; j < columns; ++j) value[j] = strength * value[j];
        of_state[to] = part_dot(before, value, columns);
        for (std::int64_t j = 0; j < columns; ++j) sum[j] -= by * value[j];
      } else {
        read_part<X>(dy + (token * c.width + column), columns, value);
        of_cotangent[to] = X{0};
        of_state[to] = part_dot(before, value, columns);
        for (std::int64_t j = 0; j < columns; ++j) sum[j] += by * value[j];
      }
    }
    store_part<G>(sum, columns, cotangent + row);
  }

  // Of the run's row, which the bank then holds.
  void row_before(std::int64_t p, std::int64_t where, std::int64_t row, std::int64_t column,
                  std::int64_t columns, X* to) const {
    B as_stored[part_columns];
    if (where < 0) {
      read_elements(bank + row, static_cast<std::size_t>(columns), as_stored);
    } else {
      const std::int64_t stride = row_bytes(format, c.width, static_cast<std::int64_t>(sizeof(B)));
      restore_part<B>(format, c.width,
                      saved + (c.of_stream(p) * c.chunk * c.writes + where) * stride, column,
                      columns, as_stored);
      if (!REPRISE_MUTANT(sdm_leaves_the_bank_as_it_was_written)) {
        write_elements(as_stored, static_cast<std::size_t>(columns), bank + row);
      }
    }
    for (std::int64_t j = 0; j < columns; ++j) to[j] = widened<X>(as_stored[j]);
  }
};

}  // namespace

template <class G, class X>
void gather_cpu(cpu_call& call, read<G> cotangent, read<std::int32_t> k_idx, read<X> tail,
                write<X> m, sdm_sizes sizes, std::int64_t n) {
  check_gather(sizes, n, cotangent, k_idx, tail, m);
  const chunk_place c{sizes, n};
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / (c.writes * c.width));
  call.parallel_for(c.streams * c.count, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t p = i / c.count;
      const auto t = static_cast<std::int32_t>(i % c.count);
      const std::int64_t token = c.token(p, t);
      const auto tails =
          tail.data() + (c.of_stream(p) * c.events + std::int64_t{t} * c.token_events());
      each_part(c.width, [&](std::int64_t column, std::int64_t columns) {
        X sum[part_columns];
        sum_rows<G, X>(c, p, cotangent.data(), k_idx.data() + token * c.writes, tails, c.writes,
                       column, columns, sum);
        store_part<X>(sum, columns, m.data() + (token * c.width + column));
      });
    }
  });
}

// Blocks of rows from the first to the last in both products: the second needs what is behind a row
// as the first left it.
template <class X>
void solve_back_cpu(cpu_call& call, read<X> inverse, read<X> pairs, read<X> dy, inout<X> m,
                    sdm_sizes sizes, std::int64_t n) {
  check_solve_back(sizes, n, inverse, pairs, dy, m);
  const chunk_place c{sizes, n};
  each_slice(call, c, [&](std::int64_t p, std::int64_t column, std::int64_t columns) {
    const std::int64_t square = c.of_stream(p) * c.chunk * c.chunk;
    const std::int64_t first = c.token(p, 0);
    const auto above = dy.data() + (first * c.width + column);
    const auto to = m.data() + (first * c.width + column);
    X sums[block_rows][slice_columns];
    for (std::int64_t s = 0; s < c.count; s += block_rows) {
      const std::int64_t rows = std::min(block_rows, c.count - s);
      sum_behind<X>(c, pairs.data() + square, above, s, rows, columns, sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        X before[slice_columns];
        read_part<X>(to + (s + r) * c.width, columns, before);
        for (std::int64_t j = 0; j < columns; ++j) before[j] += sums[r][j];
        store_part<X>(before, columns, to + (s + r) * c.width);
      }
    }
    for (std::int64_t s = 0; s < c.count; s += block_rows) {
      const std::int64_t rows = std::min(block_rows, c.count - s);
      sum_behind<X>(c, inverse.data() + square, to, s, rows, columns, sums);
      for (std::int64_t r = 0; r < rows; ++r) {
        store_part<X>(sums[r], columns, to + (s + r) * c.width);
      }
    }
  });
}

template <class B, class G, class X>
void rewind_cpu(cpu_call& call, read<std::int32_t> order, read<std::int32_t> runs,
                read<std::int32_t> rows, read<std::int32_t> written, read<X> head, read<X> keep,
                read<X> beta, read<X> dy, read<X> m, read<X> errors, read<std::uint8_t> saved,
                inout<B> bank, inout<G> cotangent, write<X> of_state, write<X> of_cotangent,
                write<X> of_both, saved_rows format, sdm_sizes sizes, std::int64_t n) {
  check_rewind(sizes, n, order, runs, rows, written, head, keep, beta, dy, m, errors, saved, bank,
               cotangent, of_state, of_cotangent, of_both, format);
  const chunk_place c{sizes, n};
  const run_rewinder<B, G, X> rewind{c,
                                     format,
                                     order.data(),
                                     runs.data(),
                                     rows.data(),
                                     written.data(),
                                     head.data(),
                                     keep.data(),
                                     beta.data(),
                                     dy.data(),
                                     m.data(),
                                     errors.data(),
                                     saved.data(),
                                     bank.data(),
                                     cotangent.data(),
                                     of_state.data(),
                                     of_cotangent.data(),
                                     of_both.data()};
  const std::int64_t most = c.most_runs();
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / c.width);
  call.parallel_for(c.streams * most, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) rewind(i / most, i % most);
  });
}

}  // namespace sdm

namespace {

template <class G>
void add_gather(kernel_registry& registry) {
  if constexpr (std::is_same_v<G, double>) {
    registry.add(sdm_gather<G>, {{device_kind::cpu, "generic", sdm::gather_cpu<G>}});
  } else {
    registry.add(sdm_gather<G>,
                 {{device_kind::cpu, "generic", sdm::gather_cpu<G>},
                  {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::gather_cuda<G>)}});
  }
}

template <class B, class G>
void add_rewind(kernel_registry& registry) {
  registry.add(sdm_rewind<B, G>,
               {{device_kind::cpu, "generic", sdm::rewind_cpu<B, G>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY((sdm::rewind_cuda<B, G>))}});
}

}  // namespace

void add_sdm_backward(kernel_registry& registry) {
  add_gather<float>(registry);
  add_gather<bf16>(registry);
  add_gather<double>(registry);
  registry.add(sdm_solve_back<float>,
               {{device_kind::cpu, "generic", sdm::solve_back_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::solve_back_cuda<float>)}});
  registry.add(sdm_solve_back<double>,
               {{device_kind::cpu, "generic", sdm::solve_back_cpu<double>}});
  add_rewind<float, float>(registry);
  add_rewind<bf16, bf16>(registry);
  add_rewind<bf16, float>(registry);
  registry.add(sdm_rewind<double, double>,
               {{device_kind::cpu, "generic", sdm::rewind_cpu<double, double>}});
}

}  // namespace reprise::REPRISE_BODIES
