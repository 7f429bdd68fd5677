// matmul on CUDA: tensor cores, with one order of k for every m.
//
// Floor: w is read once; at m = 1 .. 32 that is the time (H200: 4.4 TB/s), at large m the products.
//
// A warp owns 16 or 32 columns (rows of w) and up to 32 rows of x. It walks k in chunks of 64: sums
// of a chunk begin at zero, run through the tensor core, and are then added to the warp's sums in
// f32, rounded to nearest, since the tensor core truncates. So few columns have too few warps to
// keep the memory busy, k is split: split s of S takes the chunks c with c mod S = s, and the S
// sums are added in that order. S depends on (n, k) alone. How many rows and columns a warp owns
// depends on m, but not what is done for one row and one column.
//
// w goes from memory to registers, several chunks ahead. x comes from L1 and L2. k that is no
// multiple of eight, or rows that do not begin at 16 bytes, are read element by element, to the
// same pieces.
#include <algorithm>
#include <initializer_list>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/fragments.cuh"
#include "reprise/ops/matmul.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int warps = 8;
constexpr int threads = warps * 32;
constexpr int chunk = 64;  // 128 bytes of bf16: two pieces for each of the four lanes of a row

struct product {
  std::int64_t m, n, k;
  int splits;
  unsigned row_blocks;
  bool add;  // to what y holds
};

// Tiles of eight rows of x, Groups of 16 columns.
template <int Tiles, int Groups, bool Whole, class A, class W>
__global__ void __launch_bounds__(threads) matmul_grid(read<A> x, read<W> w, view<A> y, product p) {
  constexpr int ahead = 8 / (Groups * static_cast<int>(sizeof(W)));  // chunks of w in registers
  constexpr int values = Groups * Tiles * 4;                         // sums of a lane
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int g = lane / 4;
  const int t = lane % 4;
  const int split = warp % p.splits;
  const std::int64_t row = std::int64_t{blockIdx.x % p.row_blocks} * (8 * Tiles);
  const std::int64_t column =
      (std::int64_t{blockIdx.x / p.row_blocks} * (warps / p.splits) + warp / p.splits) *
      (16 * Groups);

  // Rows and columns past the end read the last one; their sums are not stored.
  const A* x_row[Tiles];
#pragma unroll
  for (int j = 0; j < Tiles; ++j) x_row[j] = x.data() + min(row + 8 * j + g, p.m - 1) * p.k;
  const W* w_row[2 * Groups];
#pragma unroll
  for (int i = 0; i < 2 * Groups; ++i) {
    w_row[i] = w.data() + min(column + 8 * i + g, p.n - 1) * p.k;
  }

  piece<W> coming[ahead][2 * Groups][2];
  const auto fetch = [&](int slot, std::int64_t begin) {
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        load_piece<Whole, false>(w_row[i], begin + half * 32 + t * 8, p.k, coming[slot][i][half]);
      }
    }
  };

  float sums[Groups][Tiles][4] = {};
  const auto multiply = [&](int slot, std::int64_t begin) {
    fragment<W> a[2 * Groups][2];
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) take_apart(coming[slot][i][half], a[i][half]);
    }
#pragma unroll
    for (int j = 0; j < Tiles; ++j) {
      piece<A> stored[2];
      fragment<A> b[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        load_piece<Whole, true>(x_row[j], begin + half * 32 + t * 8, p.k, stored[half]);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) take_apart(stored[half], b[half]);
#pragma unroll
      for (int i = 0; i < Groups; ++i) {
        float of_chunk[4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          multiply_add(of_chunk, a[2 * i][half], a[2 * i + 1][half], b[half]);
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i][j][e] = __fadd_rn(sums[i][j][e], of_chunk[e]);
      }
    }
  };

  const std::int64_t stride = std::int64_t{chunk} * p.splits;
  std::int64_t begin = std::int64_t{chunk} * split;
#pragma unroll
  for (int slot = 0; slot < ahead; ++slot) fetch(slot, begin + slot * stride);
  while (begin < p.k) {
#pragma unroll
    for (int slot = 0; slot < ahead; ++slot) {
      if (begin < p.k) {  // the same for the whole warp, as mma must have it
        multiply(slot, begin);
        fetch(slot, begin + ahead * stride);
      }
      begin += stride;
    }
  }

  __shared__ float of_split[warps][values][32];
#pragma unroll
  for (int i = 0; i < Groups; ++i) {
#pragma unroll
    for (int j = 0; j < Tiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) of_split[warp][(i * Tiles + j) * 4 + e][lane] = sums[i][j][e];
    }
  }
  __syncthreads();
  for (int v = split; v < values; v += p.splits) {  // the warps of a sum share what is to be stored
    float sum = of_split[warp - split][v][lane];
    for (int s = 1; s < p.splits; ++s) sum = __fadd_rn(sum, of_split[warp - split + s][v][lane]);
    const std::int64_t at_row = row + v / 4 % Tiles * 8 + 2 * t + v % 2;
    const std::int64_t at_column = column + v / 4 / Tiles * 16 + g + v % 4 / 2 * 8;
    if (at_row >= p.m || at_column >= p.n) continue;
    A& to = y.data()[at_row * p.n + at_column];
    to = narrow<A>(p.add ? __fadd_rn(widen(to), sum) : sum);
  }
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Some 16 warps for each of the 132 processors of an H200, which keep 64 KiB in flight on each.
constexpr std::int64_t enough_warps = 2048;

int splits_of(std::int64_t n, std::int64_t k) {
  int splits = 1;
  while (splits < warps && ceil_div(n, 16) * splits < enough_warps &&
         2 * splits <= ceil_div(k, chunk)) {
    splits *= 2;
  }
  return splits;
}

template <int Tiles, int Groups, bool Whole, class A, class W>
void launch_grid(cuda_call& on, const read<A>& x, const read<W>& w, const view<A>& y, product p) {
  p.row_blocks = static_cast<unsigned>(ceil_div(p.m, 8 * Tiles));
  const std::int64_t column_blocks = ceil_div(p.n, 16 * Groups * (warps / p.splits));
  // Blocks that share columns come one after the other, so that w comes from L2 for all but one.
  const auto blocks = static_cast<unsigned>(p.row_blocks * column_blocks);
  matmul_grid<Tiles, Groups, Whole><<<blocks, threads, 0, on.stream()>>>(x, w, y, p);
}

template <class A, class W>
void run_matmul(cuda_call& on, const read<A>& x, const read<W>& w, const view<A>& y, std::int64_t n,
                std::int64_t k, bool add) {
  const product p{matmul_rows(x.size(), w.size(), y.size(), n, k), n, k, splits_of(n, k), 1, add};
  if (p.m == 0 || n == 0) return;
  const auto aligned = [](const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
  };
  if (k % 8 != 0 || !aligned(x.data()) || !aligned(w.data())) {
    launch_grid<1, 1, false>(on, x, w, y, p);
    return;
  }
  if (p.m <= 8) {
    launch_grid<1, 1, true>(on, x, w, y, p);
    return;
  }
  if constexpr (sizeof(W) == 2) {
    // Wide warps read x half as often, where there are columns enough for many of them.
    if (ceil_div(n, 32) * p.splits >= enough_warps / 2) {
      p.m <= 16 ? launch_grid<2, 2, true>(on, x, w, y, p) : launch_grid<4, 2, true>(on, x, w, y, p);
      return;
    }
  }
  p.m <= 16 ? launch_grid<2, 1, true>(on, x, w, y, p) : launch_grid<4, 1, true>(on, x, w, y, p);
}

}  // namespace

template <class A, class W>
void matmul_cuda(cuda_call& on, read<A> x, read<W> w, write<A> y, std::int64_t n, std::int64_t k) {
  run_matmul<A, W>(on, x, w, y, n, k, false);
}

template <class A, class W>
void matmul_add_cuda(cuda_call& on, read<A> x, read<W> w, inout<A> y, std::int64_t n,
                     std::int64_t k) {
  run_matmul<A, W>(on, x, w, y, n, k, true);
}

template void matmul_cuda(cuda_call&, read<float>, read<float>, write<float>, std::int64_t,
                          std::int64_t);
template void matmul_cuda(cuda_call&, read<float>, read<bf16>, write<float>, std::int64_t,
                          std::int64_t);
template void matmul_cuda(cuda_call&, read<bf16>, read<bf16>, write<bf16>, std::int64_t,
                          std::int64_t);
template void matmul_add_cuda(cuda_call&, read<float>, read<float>, inout<float>, std::int64_t,
                              std::int64_t);
template void matmul_add_cuda(cuda_call&, read<float>, read<bf16>, inout<float>, std::int64_t,
                              std::int64_t);
template void matmul_add_cuda(cuda_call&, read<bf16>, read<bf16>, inout<bf16>, std::int64_t,
                              std::int64_t);

}  // namespace reprise::REPRISE_BODIES::ops
