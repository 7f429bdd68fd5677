#include "reprise/ops/matmul.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/lanes.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/sum_order.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

// What a thread takes at a time: the weights of 16 columns stay in L1 while up to 64 rows of x,
// which stay in L2, pass over them.
constexpr std::int64_t tile_rows = 64;
constexpr std::int64_t tile_columns = 16;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

template <class Rung, class A, class W>
struct matmul_tiles {
  pointer_to<const A> x;
  pointer_to<const W> w;
  pointer_to<A> y;
  std::int64_t m, n, k;
  bool add;  // to what y holds

  std::int64_t column_tiles() const { return ceil_div(n, tile_columns); }
  std::int64_t count() const { return ceil_div(m, tile_rows) * column_tiles(); }
  std::int64_t grain() const {  // some 20 us of one core
    return std::max<std::int64_t>(1, (1 << 18) / (tile_columns * k * std::min(m, tile_rows)));
  }

  [[gnu::always_inline]] void operator()(std::int64_t first, std::int64_t last) const {
    for (std::int64_t tile = first; tile < last; ++tile) {
      const std::int64_t row = tile / column_tiles() * tile_rows;
      const std::int64_t column = tile % column_tiles() * tile_columns;
      const std::int64_t row_end = std::min(row + tile_rows, m);
      const std::int64_t column_end = std::min(column + tile_columns, n);
      // Eight accumulators in any shape: enough to hide the latency of an addition.
      std::int64_t r = row;
      for (; r + 4 <= row_end; r += 4) columns<4, 2>(r, column, column_end);
      if (r + 2 <= row_end) {
        columns<2, 4>(r, column, column_end);
        r += 2;
      }
      if (r < row_end) columns<1, 8>(r, column, column_end);
    }
  }

  template <int Rows, int Cols>
  [[gnu::always_inline]] void columns(std::int64_t row, std::int64_t c, std::int64_t end) const {
    for (; c + Cols <= end; c += Cols) block<Rows, Cols>(row, c);
    for (; c < end; ++c) block<Rows, 1>(row, c);
  }

  template <int Rows, int Cols>
  [[gnu::always_inline]] void block(std::int64_t row, std::int64_t column) const {
    float sums[Rows * Cols];
    dot_block<Rung::width, Rows, Cols>(x + row * k, k, w + column * k, k, k, sums);
    for (int r = 0; r < Rows; ++r) {
      for (int c = 0; c < Cols; ++c) {
        const auto to = y + ((row + r) * n + column + c);
        const float sum = sums[r * Cols + c];
        *to = narrow<A>(add ? widen(*to) + sum : sum);
      }
    }
  }
};

template <class Rung, class A, class W>
void run_matmul(const cpu_call& call, const read<A>& x, const read<W>& w, const view<A>& y,
                std::int64_t n, std::int64_t k, bool add) {
  const std::int64_t m = matmul_rows(x.size(), w.size(), y.size(), n, k);
  if (m == 0 || n == 0) return;
  const matmul_tiles<Rung, A, W> tiles{x.data(), w.data(), y.data(), m, n, k, add};
  spread<Rung>(call, tiles.count(), tiles.grain(), tiles);
}

}  // namespace

std::int64_t matmul_rows(std::size_t x, std::size_t w, std::size_t y, std::int64_t n,
                         std::int64_t k) {
  const std::int64_t m = whole_rows("matmul", "x", x, k);
  if (n < 0) throw usage_error{fmt::format("matmul: n is {}; give at least 0", n)};
  need_elements("matmul", "w", w, static_cast<std::size_t>(n * k));
  need_elements("matmul", "y", y, static_cast<std::size_t>(m * n));
  return m;
}

template <class Rung, class A, class W>
void matmul_cpu(cpu_call& call, read<A> x, read<W> w, write<A> y, std::int64_t n, std::int64_t k) {
  run_matmul<Rung, A, W>(call, x, w, y, n, k, false);
}

template <class Rung, class A, class W>
void matmul_add_cpu(cpu_call& call, read<A> x, read<W> w, inout<A> y, std::int64_t n,
                    std::int64_t k) {
  run_matmul<Rung, A, W>(call, x, w, y, n, k, true);
}

}  // namespace ops

namespace {

template <class A, class W>
void add_matmul_of(kernel_registry& registry) {
  registry.add(matmul<A, W>, {
    {device_kind::cpu, "generic", ops::matmul_cpu<ops::generic_rung, A, W>},
#if defined(REPRISE_X86_RUNGS)
        {device_kind::cpu, "avx2", ops::matmul_cpu<ops::avx2_rung, A, W>},
        {device_kind::cpu, "avx512", ops::matmul_cpu<ops::avx512_rung, A, W>},
#endif
    {
      .device = device_kind::cuda, .arch = "sm_80",
      .body = REPRISE_CUDA_BODY((ops::matmul_cuda<A, W>)),
      .source = "matmul.cu: K is split by n, k and the types alone",
      .bound = ops::other_order_of_sums<A>
    }
  });
  registry.add(matmul_add<A, W>, {
    {device_kind::cpu, "generic", ops::matmul_add_cpu<ops::generic_rung, A, W>},
#if defined(REPRISE_X86_RUNGS)
        {device_kind::cpu, "avx2", ops::matmul_add_cpu<ops::avx2_rung, A, W>},
        {device_kind::cpu, "avx512", ops::matmul_add_cpu<ops::avx512_rung, A, W>},
#endif
    {
      .device = device_kind::cuda, .arch = "sm_80",
      .body = REPRISE_CUDA_BODY((ops::matmul_add_cuda<A, W>)),
      .source = "matmul.cu: K is split by n, k and the types alone",
      .bound = ops::other_order_of_sums<A>
    }
  });
}

}  // namespace

void add_matmul(kernel_registry& registry) {
  add_matmul_of<float, float>(registry);
  add_matmul_of<float, bf16>(registry);
  add_matmul_of<bf16, bf16>(registry);
}

}  // namespace reprise::REPRISE_BODIES
