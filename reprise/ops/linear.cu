// The products of linear.hpp on CUDA: f32 fused multiply-adds over tiles in shared memory.
//
// A group of one or four warps owns a square tile of outputs and one part of the sum (64 terms) at
// a time; a thread owns R by C outputs of the tile. Both operands come in slabs of 16 terms, the
// next one loaded into registers while this one is multiplied, and lie in shared memory with the
// tile's lines side by side, whichever way they lie in global memory. Loads run along what is
// contiguous there.
//
// Where there are few outputs the parts of a sum go to up to eight groups of a block at a time, and
// the block adds the groups' sums in the order of the parts. So the order of a sum is the one that
// linear.hpp says, whatever the tile is and however many groups there are; both are free to depend
// on m. Operands are widened, and rounded to tf32, as they enter shared memory. Products of f32
// that are small altogether have a kernel of their own (small_product.cuh).
#include <algorithm>
#include <type_traits>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/put_sum.cuh"
#include "reprise/ops/small_product.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int slab = 16;  // terms in shared memory at a time
constexpr int most_groups = 8;
static_assert(sum_part % slab == 0 && slab == padded_terms);

template <int Count>
__device__ inline void load_shared(const float* from, float (&to)[Count]) {
  if constexpr (Count % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      to[i] = four.x;
      to[i + 1] = four.y;
      to[i + 2] = four.z;
      to[i + 3] = four.w;
    }
  } else {
    static_assert(Count == 2);
    const float2 two = *reinterpret_cast<const float2*>(from);
    to[0] = two.x;
    to[1] = two.y;
  }
}

// What one thread brings of an operand: Each elements of a slab, for a tile of Tile lines and
// Threads threads.
template <int Tile, int Threads, class A>
struct bringer {
  static constexpr int each = Tile * slab / Threads;
  const A* data;  // of the thread's first element, at depth 0
  std::int64_t depth_stride;
  std::int64_t step;  // from one of its elements to the next, in memory
  int line, term;     // of the first, in the tile and in the slab
  int line_step, term_step;
  int lines_left;
  A coming[each];

  __device__ bringer(const operand<A>& from, std::int64_t first_line, int thread) {
    const bool along_depth = from.depth_stride == 1;
    line = along_depth ? thread / slab : thread % Tile;
    term = along_depth ? thread % slab : thread / Tile;
    line_step = along_depth ? Threads / slab : 0;
    term_step = along_depth ? 0 : Threads / Tile;
    lines_left = static_cast<int>(min(from.lines - first_line, std::int64_t{Tile})) - line;
    depth_stride = from.depth_stride;
    step = line_step * from.line_stride + term_step * depth_stride;
    data = from.data + (first_line + line) * from.line_stride + term * depth_stride;
  }

  // The slab that begins at `depth`; zeros past either end.
  __device__ void fetch(std::int64_t depth, std::int64_t depth_end) {
    const int terms_left = static_cast<int>(min(depth_end - depth, std::int64_t{slab})) - term;
    const A* at = data + depth * depth_stride;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const bool there = i * line_step < lines_left && i * term_step < terms_left;
      coming[i] = there ? *at : A{};
      at += step;
    }
  }

  // Into a panel: element l of line j at panel[l * stride + j].
  __device__ void store(float* panel, int stride, bool tf32) const {
    float* at = panel + term * stride + line;
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const float wide = widen(coming[i]);
      *at = tf32 ? rounded_to_tf32(wide) : wide;
      at += term_step * stride + line_step;
    }
  }
};

// Side by Side warps make a group, each with 8 R rows and 4 C columns.
template <int R, int C, int Side>
struct tiling {
  static_assert(8 * R == 4 * C, "tiles are squares");
  static constexpr int tile = 8 * R * Side;
  static constexpr int threads = 32 * Side * Side;
  static constexpr int stride = tile + 4;  // of a line in shared memory: 16 bytes more, for banks
  static constexpr int groups = Side == 1 ? most_groups : 1;
  static constexpr int blocks = Side == 1 ? 2 : 4;  // on a processor: 128 registers for a thread
  static constexpr int panel = slab * stride;
  // Room of a group: both panels, and later its sums.
  static constexpr int room = std::max(2 * panel, tile* stride);
};

template <int R, int C, int Side, class A>
__global__ void __launch_bounds__(tiling<R, C, Side>::threads* tiling<R, C, Side>::groups,
                                  tiling<R, C, Side>::blocks) product_grid(product<A> p) {
  using shape = tiling<R, C, Side>;
  constexpr int tile = shape::tile;
  constexpr int stride = shape::stride;
  __shared__ __align__(16) float rooms[shape::groups][shape::room];
  __shared__ float totals[Side == 1 ? tile * tile : 1];

  const gradient_rule rule = p.rule == nullptr ? gradient_rule::write : gradient_rule_of(*p.rule);
  if (rule == gradient_rule::leave) return;  // every thread

  const int group = threadIdx.x / shape::threads;
  const int groups = blockDim.x / shape::threads;
  const int thread = threadIdx.x % shape::threads;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int my_row = warp / Side * (8 * R) + lane / 4 * R;
  const int my_column = warp % Side * (4 * C) + lane % 4 * C;
  const std::int64_t row = std::int64_t{blockIdx.x} * tile;
  const std::int64_t column = std::int64_t{blockIdx.y} * tile;
  float* const room = rooms[group];
  const auto wait_for_group = [] {
    if constexpr (Side == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  };

  bringer<tile, shape::threads, A> a{p.a, row, thread};
  bringer<tile, shape::threads, A> b{p.b, column, thread};
  a.fetch(group * sum_part, p.depth);
  b.fetch(group * sum_part, p.depth);

  float total[R][C] = {};  // for one group
  if constexpr (Side == 1) {
    for (int e = threadIdx.x; e < tile * tile; e += blockDim.x) totals[e] = 0.0f;
  }
  const std::int64_t round_terms = groups * sum_part;
  for (std::int64_t round = 0; round < p.depth; round += round_terms) {
    const std::int64_t begin = round + group * sum_part;
    const std::int64_t end = min(begin + sum_part, p.depth);
    float sums[R][C] = {};
    for (std::int64_t at = begin; at < end; at += slab) {
      a.store(room, stride, p.tf32);
      b.store(room + shape::panel, stride, p.tf32);
      wait_for_group();
      const std::int64_t next = at + slab < end ? at + slab : begin + round_terms;
      a.fetch(next, p.depth);
      b.fetch(next, p.depth);
#pragma unroll 8
      for (int l = 0; l < slab; ++l) {  // past the end both are zero
        float left[R];
        float right[C];
        load_shared(room + l * stride + my_row, left);
        load_shared(room + shape::panel + l * stride + my_column, right);
#pragma unroll
        for (int r = 0; r < R; ++r) {
#pragma unroll
          for (int c = 0; c < C; ++c) sums[r][c] = __fmaf_rn(left[r], right[c], sums[r][c]);
        }
      }
      wait_for_group();
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if constexpr (Side == 1) {
          if (begin < p.depth) room[(my_row + r) * stride + my_column + c] = sums[r][c];
        } else {
          total[r][c] = __fadd_rn(total[r][c], sums[r][c]);
        }
      }
    }
    if constexpr (Side == 1) {
      const auto parts =
          static_cast<int>(min(std::int64_t{groups}, (p.depth - round + sum_part - 1) / sum_part));
      __syncthreads();
      for (int e = threadIdx.x; e < tile * tile; e += blockDim.x) {
        float sum = totals[e];
        for (int g = 0; g < parts; ++g) {
          sum = __fadd_rn(sum, rooms[g][e / tile * stride + e % tile]);
        }
        totals[e] = sum;
      }
      __syncthreads();  // the next round takes the rooms again
    }
  }

  if constexpr (Side != 1) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int c = 0; c < C; ++c) room[(my_row + r) * stride + my_column + c] = total[r][c];
    }
    __syncthreads();
  }
  for (int e = threadIdx.x; e < tile * tile; e += blockDim.x) {
    const std::int64_t at_row = row + e / tile;
    const std::int64_t at_column = column + e % tile;
    if (at_row >= p.a.lines || at_column >= p.b.lines) continue;
    float sum = Side == 1 ? totals[e] : room[e / tile * stride + e % tile];
    if (p.bias != nullptr) sum = __fadd_rn(sum, p.bias[at_column]);
    put_sum(rule, sum, p.to[at_row * p.b.lines + at_column]);
  }
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

template <int R, int C, int Side, class A>
void launch_grid(cuda_call& on, const product<A>& p) {
  using shape = tiling<R, C, Side>;
  const auto parts = std::max<std::int64_t>(1, ceil_div(p.depth, sum_part));
  const auto groups = static_cast<unsigned>(std::min<std::int64_t>(shape::groups, parts));
  const dim3 blocks{static_cast<unsigned>(ceil_div(p.a.lines, shape::tile)),
                    static_cast<unsigned>(ceil_div(p.b.lines, shape::tile))};
  product_grid<R, C, Side, A><<<blocks, groups * shape::threads, 0, on.stream()>>>(p);
}

template <int Tile, int Parts, bool SumsRows = false>
void launch_small(cuda_call& on, const product<float>& p, const sums_of_rows& sums = {}) {
  const dim3 blocks{static_cast<unsigned>(ceil_div(p.a.lines, Tile)),
                    static_cast<unsigned>(ceil_div(p.b.lines, Tile))};
  small_product_grid<Tile, Parts, SumsRows>
      <<<blocks, small_tiling<Tile, Parts>::threads, 0, on.stream()>>>(p, sums);
}

template <int Tile>
bool fits_small(const product<float>& p, std::int64_t most_blocks) {
  const std::int64_t across = ceil_div(p.b.lines, Tile);
  return across <= most_blocks_across && ceil_div(p.a.lines, Tile) * across <= most_blocks;
}

// As a gradient of weights is, of few rows: more outputs, and a sum of two parts at most.
bool is_small_and_flat(const product<float>& p) {
  return fits_small<16>(p, 4 * 132) && p.depth <= 2 * sum_part;
}

// An H200 has 132 processors. Large tiles read shared and global memory least, small ones keep more
// processors busy.
template <class A>
void run_product(cuda_call& on, const product<A>& p) {
  const auto tiles = [&p](std::int64_t side) {
    return ceil_div(p.a.lines, side) * ceil_div(p.b.lines, side);
  };
  if constexpr (std::is_same_v<A, float>) {
    if (fits_small<8>(p, 2 * 132) && p.depth <= 2 * 4 * sum_part) return launch_small<8, 4>(on, p);
    if (is_small_and_flat(p)) return launch_small<16, 1>(on, p);
  }
  if (tiles(64) >= 2 * 132) {
    launch_grid<4, 8, 2>(on, p);
  } else if (tiles(32) >= 132 / 2) {
    launch_grid<4, 8, 1>(on, p);
  } else {
    launch_grid<2, 4, 1>(on, p);
  }
}

constexpr int most_warps = 32;

// A block sums 32 columns, a warp one part of their sums at a time.
__global__ void __launch_bounds__(most_warps * 32)
    column_sum_grid(read<float> dy, inout<float> db, read<std::int32_t> rule_word, std::int64_t m,
                    std::int64_t n) {
  __shared__ float of_part[most_warps][32];
  const gradient_rule rule = gradient_rule_of(rule_word.data()[0]);
  if (rule == gradient_rule::leave) return;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warps = blockDim.x / 32;
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + lane;
  const bool there = column < n;
  float total = 0.0f;
  for (std::int64_t round = 0; round < m; round += warps * sum_part) {
    const std::int64_t begin = round + warp * sum_part;
    const std::int64_t end = min(begin + sum_part, m);
    float sum = 0.0f;
    if (there) {
#pragma unroll 16
      for (std::int64_t i = begin; i < end; ++i) sum = __fadd_rn(sum, dy.data()[i * n + column]);
    }
    of_part[warp][lane] = sum;
    __syncthreads();
    if (warp == 0) {
      const auto parts =
          static_cast<int>(min(std::int64_t{warps}, (m - round + sum_part - 1) / sum_part));
      for (int part = 0; part < parts; ++part) total = __fadd_rn(total, of_part[part][lane]);
    }
    __syncthreads();
  }
  if (warp != 0 || !there) return;
  put_sum(rule, total, db.data()[column]);
}

template <class A>
operand<A> along_depth(const read<A>& from, std::int64_t lines, std::int64_t depth) {
  return {from.data(), lines, depth, 1};
}
template <class A>
operand<A> across_depth(const read<A>& from, std::int64_t lines) {
  return {from.data(), lines, 1, lines};
}

}  // namespace

template <class A>
void linear_cuda(cuda_call& on, read<A> x, read<A> w, read<float> bias, write<float> y,
                 std::int64_t n, std::int64_t k, matrix_precision precision) {
  const std::int64_t m = linear_rows(x.size(), w.size(), bias.size(), y.size(), n, k);
  if (m == 0) return;
  run_product<A>(
      on, {along_depth(x, m, k), along_depth(w, n, k), k, y.data(),
           bias.size() == 0 ? nullptr : bias.data(), nullptr, precision == matrix_precision::tf32});
}

template <class A>
void linear_input_grad_cuda(cuda_call& on, read<A> dy, read<A> w, write<float> dx, std::int64_t n,
                            std::int64_t k, matrix_precision precision) {
  const std::int64_t m = linear_input_grad_rows(dy.size(), w.size(), dx.size(), n, k);
  if (m == 0) return;
  run_product<A>(on, {along_depth(dy, m, n), across_depth(w, k), n, dx.data(), nullptr, nullptr,
                      precision == matrix_precision::tf32});
}

template <class A>
void linear_weight_grad_cuda(cuda_call& on, read<A> dy, read<A> x, inout<float> dw,
                             read<std::int32_t> rule, std::int64_t n, std::int64_t k,
                             matrix_precision precision) {
  const std::int64_t m = linear_weight_grad_rows(dy.size(), x.size(), dw.size(), rule.size(), n, k);
  run_product<A>(on, {across_depth(dy, n), across_depth(x, k), m, dw.data(), nullptr, rule.data(),
                      precision == matrix_precision::tf32});
}

void linear_parameter_grads_cuda(cuda_call& on, read<float> dy, read<float> x, inout<float> dw,
                                 inout<float> db, read<std::int32_t> rule,
                                 read<std::int32_t> bias_rule, std::int64_t n, std::int64_t k,
                                 matrix_precision precision) {
  const std::int64_t m = linear_weight_grad_rows(dy.size(), x.size(), dw.size(), rule.size(), n, k);
  column_sum_rows(dy.size(), db.size(), bias_rule.size(), n);
  const product<float> p{
      across_depth(dy, n), across_depth(x, k), m, dw.data(), nullptr, rule.data(), false};
  if (precision == matrix_precision::full && is_small_and_flat(p)) {
    return launch_small<16, 1, true>(on, p, {db.data(), bias_rule.data()});
  }
  linear_weight_grad_cuda<float>(on, dy, x, dw, rule, n, k, precision);
  column_sum_cuda(on, dy, db, bias_rule, n);  // of what comes, not of what tf32 has of it
}

void column_sum_cuda(cuda_call& on, read<float> dy, inout<float> db, read<std::int32_t> rule,
                     std::int64_t n) {
  const std::int64_t m = column_sum_rows(dy.size(), db.size(), rule.size(), n);
  const auto parts = std::max<std::int64_t>(1, ceil_div(m, sum_part));
  const auto warps = static_cast<unsigned>(std::min<std::int64_t>(most_warps, parts));
  const auto blocks = static_cast<unsigned>(ceil_div(n, 32));
  column_sum_grid<<<blocks, warps * 32, 0, on.stream()>>>(dy, db, rule, m, n);
}

template void linear_cuda(cuda_call&, read<float>, read<float>, read<float>, write<float>,
                          std::int64_t, std::int64_t, matrix_precision);
template void linear_cuda(cuda_call&, read<bf16>, read<bf16>, read<float>, write<float>,
                          std::int64_t, std::int64_t, matrix_precision);
template void linear_input_grad_cuda(cuda_call&, read<float>, read<float>, write<float>,
                                     std::int64_t, std::int64_t, matrix_precision);
template void linear_input_grad_cuda(cuda_call&, read<bf16>, read<bf16>, write<float>, std::int64_t,
                                     std::int64_t, matrix_precision);
template void linear_weight_grad_cuda(cuda_call&, read<float>, read<float>, inout<float>,
                                      read<std::int32_t>, std::int64_t, std::int64_t,
                                      matrix_precision);
template void linear_weight_grad_cuda(cuda_call&, read<bf16>, read<bf16>, inout<float>,
                                      read<std::int32_t>, std::int64_t, std::int64_t,
                                      matrix_precision);

}  // namespace reprise::REPRISE_BODIES::ops
