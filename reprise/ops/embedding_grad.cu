// embedding_grad on CUDA: a block for 256 columns of one token's row.
//
// It looks at all tokens, 4,096 at a time, and lists the rows of its own in order. A warp adds up a
// part of 64 of them, eight columns to a lane; a round is a part for each warp, and then thread t
// adds the parts' sums of column t in their order. So a token that many rows have, as spaces are a
// fifth of a text, takes a sixteenth of the time that one warp would. At 8,192 rows the tokens,
// 32 KB, come from L2; dy is read once.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/embedding_grad.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/put_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int warps = 16;
constexpr int threads = warps * 32;
constexpr int per_thread = 8;  // neighbouring tokens
constexpr int looked_at = threads * per_thread;
constexpr int part = static_cast<int>(sum_part);
constexpr int round_rows = warps * part;
static_assert(table_columns == 32 * 8 && table_columns <= threads);

struct row_list {
  std::int32_t rows[looked_at + round_rows];  // what is left of a round, and what is found
  int of_warp[warps];
};

// Bit i: token first + i is this one.
__device__ unsigned matches(const std::int32_t* tokens, std::int64_t first, std::int64_t m,
                            std::int32_t token) {
  unsigned found = 0;
  if (first + per_thread <= m && reinterpret_cast<std::uintptr_t>(tokens + first) % 16 == 0) {
    const int4 low = reinterpret_cast<const int4*>(tokens + first)[0];
    const int4 high = reinterpret_cast<const int4*>(tokens + first)[1];
    const std::int32_t all[per_thread] = {low.x,  low.y,  low.z,  low.w,
                                          high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < per_thread; ++i) found |= (all[i] == token ? 1u : 0u) << i;
  } else {
#pragma unroll
    for (int i = 0; i < per_thread; ++i) {
      if (first + i < m && tokens[first + i] == token) found |= 1u << i;
    }
  }
  return found;
}

// Lists the rows of `found` behind the `listed` that are there, in the order of threads; returns
// how many there are then. All threads of the block.
__device__ int list_rows(row_list& to, int listed, std::int64_t first, unsigned found) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int mine = __popc(found);
  int place = mine;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, place, by);
    if (lane >= by) place += before;
  }
  if (lane == 31) to.of_warp[warp] = place;
  __syncthreads();
  place += listed - mine;
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    const int of_warp = to.of_warp[w];
    if (w < warp) place += of_warp;
    listed += of_warp;
  }
  while (found != 0) {
    const int i = __ffs(static_cast<int>(found)) - 1;
    to.rows[place++] = static_cast<std::int32_t>(first + i);
    found &= found - 1;
  }
  __syncthreads();
  return listed;
}

// The part of `count` rows at `rows`: eight columns of it for each lane.
template <bool Aligned>
__device__ void sum_rows(const float* dy, const std::int32_t* rows, int count, std::int64_t column,
                         std::int64_t width, float (&sums)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i] = 0.0f;
  if (column >= width) return;
#pragma unroll 4
  for (int l = 0; l < count; ++l) {
    float values[8];
    load_eight<Aligned>(dy + rows[l] * width, column, width, values);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = math::add(sums[i], values[i]);
  }
}

template <bool Aligned>
__global__ void __launch_bounds__(threads, 2)
    embedding_grad_grid(read<std::int32_t> tokens, read<float> dy, inout<float> dtable,
                        read<std::int32_t> rule, std::int64_t width) {
  const gradient_rule what = gradient_rule_of(rule.data()[0]);
  if (what == gradient_rule::leave) return;
  __shared__ row_list list;
  __shared__ __align__(16) float of_part[warps][table_columns];
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const auto m = static_cast<std::int64_t>(tokens.size());
  const std::int64_t begin = std::int64_t{blockIdx.y} * table_columns;
  float total = 0.0f;  // of column begin + thread
  int listed = 0;
  for (std::int64_t at = 0; at < m; at += looked_at) {
    const std::int64_t first = at + thread * per_thread;
    const unsigned found = matches(tokens.data(), first, m, static_cast<std::int32_t>(blockIdx.x));
    listed = list_rows(list, listed, first, found);
    const bool is_last = at + looked_at >= m;
    int done = 0;
    while (listed - done >= round_rows || (is_last && listed > done)) {
      const int here = min(round_rows, listed - done);
      const int count = min(part, here - warp * part);
      if (count > 0) {
        float sums[8];
        sum_rows<Aligned>(dy.data(), list.rows + done + warp * part, count, begin + lane * 8, width,
                          sums);
        store_eight(of_part[warp] + lane * 8, sums);
      }
      __syncthreads();
      if (thread < table_columns) {
        for (int p = 0; p * part < here; ++p) total = math::add(total, of_part[p][thread]);
      }
      __syncthreads();
      done += here;
    }
    if (done == 0) continue;
    // What is left of them, less than a round, goes to the front.
    std::int32_t kept[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int from = done + i * threads + thread;
      kept[i] = from < listed ? list.rows[from] : 0;
    }
    __syncthreads();
    listed -= done;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int to = i * threads + thread;
      if (to < listed) list.rows[to] = kept[i];
    }
  }
  static_assert(round_rows <= 2 * threads);
  if (thread >= table_columns || begin + thread >= width) return;
  put_sum(what, total, dtable.data()[std::int64_t{blockIdx.x} * width + begin + thread]);
}

}  // namespace

void embedding_grad_cuda(cuda_call& call, read<std::int32_t> tokens, read<float> dy,
                         inout<float> dtable, read<std::int32_t> rule, std::int64_t width) {
  const std::int64_t vocabulary =
      embedding_grad_vocabulary(tokens.size(), dy.size(), dtable.size(), rule.size(), width);
  if (vocabulary == 0) return;
  const dim3 blocks{static_cast<unsigned>(vocabulary),
                    static_cast<unsigned>((width + table_columns - 1) / table_columns)};
  const auto grid =
      in_eights(width, {dy.data()}) ? &embedding_grad_grid<true> : &embedding_grad_grid<false>;
  grid<<<blocks, threads, 0, call.stream()>>>(tokens, dy, dtable, rule, width);
}

}  // namespace reprise::REPRISE_BODIES::ops
