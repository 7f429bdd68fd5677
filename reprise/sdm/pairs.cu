// sdm_pairs and sdm_invert on CUDA.
//
// sdm_pairs: a warp for each row of either matrix, which lies in shared memory until it is whole.
// The lanes look up the runs of 32 writes or reads of the token at a time; those that have anything
// before them, mostly few, are then taken one after the other, the lanes over the events of the
// run. No two lanes add to one element, since of a token's writes on a slot one counts.
//
// sdm_invert: a block for each chunk and 64 columns, a thread for a column. Four rows at a time:
// their sums over the rows above are independent, and a row of four numbers of M is one load. M's
// rows, the next four on their way behind the sums, and the columns are in shared memory up to
// chunks of 341; larger ones read both where they lie.
#include <cuda_pipeline.h>

#include <algorithm>

#include "reprise/cuda/call.cuh"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/pairs.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

constexpr unsigned whole_warp = 0xffffffffu;
constexpr int most_warps = 8;
constexpr std::int64_t most_row_bytes = 48 * 1024;  // what a block gets without an attribute
static_assert(most_sdm_events / 2 * sizeof(float) <= most_row_bytes, "a row fits");

struct pairs_arrays {
  const std::int32_t *order, *place, *run_of, *runs;
  const float *k_val, *q_val;
  const double* level;
  float *recalls, *readings;
};

__global__ void __launch_bounds__(most_warps * 32)
    pairs_grid(pairs_arrays all, sdm_sizes sizes, unsigned rows) {
  extern __shared__ float sums[];
  const int lane = threadIdx.x % 32;
  const unsigned row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;  // whole warps leave
  const auto side = static_cast<int>(sizes.chunk);
  const std::int64_t chunk = row / (2u * side);
  const auto t_of_both = static_cast<int>(row % (2u * side));
  const bool is_reading = t_of_both >= side;
  const int t = is_reading ? t_of_both - side : t_of_both;
  const std::int64_t p = chunk / sizes.chunks();
  const std::int64_t n = chunk % sizes.chunks();
  const std::int64_t token = p * sizes.tokens + n * sizes.chunk;
  const auto events = static_cast<int>(sizes.events());
  const auto token_events = static_cast<int>(sizes.token_events());
  const auto writes = static_cast<int>(sizes.writes);
  const std::int32_t* const order = all.order + chunk * events;
  const std::int32_t* const place = all.place + chunk * events;
  const std::int32_t* const run_of = all.run_of + chunk * events;
  const std::int32_t* const runs = all.runs + chunk * (events + 1);
  const double* const level = all.level + chunk * events;
  const float* const k_val = all.k_val + token * writes;

  float* const to = sums + threadIdx.x / 32 * side;
  for (int s = lane; s < side; s += 32) to[s] = 0.0f;
  __syncwarp();

  const int count =
      t >= sizes.tokens_in(n) ? 0 : static_cast<int>(is_reading ? sizes.reads : sizes.writes);
  const int first_event = t * token_events + (is_reading ? writes : 0);
  const float* const weights =
      is_reading ? all.q_val + (token + t) * sizes.reads : k_val + std::int64_t{t} * writes;
  const int tokens_end = is_reading ? t + 1 : t;
  for (int base = 0; base < count; base += 32) {
    int begin = 0;
    int end = 0;
    float weight = 0.0f;
    double later = 0.0;
    if (base + lane < count) {
      const int event = first_event + base + lane;
      const int here = place[event];
      if (here >= 0) {
        begin = runs[run_of[event]];
        end = here;
        weight = weights[base + lane];
        later = level[event];
      }
    }
    for (unsigned todo = __ballot_sync(whole_warp, begin < end); todo != 0; todo &= todo - 1) {
      const int from = __ffs(static_cast<int>(todo)) - 1;
      const int run_begin = __shfl_sync(whole_warp, begin, from);
      const int run_end = __shfl_sync(whole_warp, end, from);
      const float run_weight = __shfl_sync(whole_warp, weight, from);
      const double run_later = __shfl_sync(whole_warp, later, from);
      for (int i = run_begin + lane; i < run_end; i += 32) {
        const int earlier = order[i];
        const int s = earlier / token_events;
        const int w = earlier - s * token_events;
        if (w >= writes || s >= tokens_end) continue;
        // Events before a write, of its token and on its slot, are writes.
        if (i > run_begin && order[i - 1] / token_events == s) continue;
        const float both = math::mul(run_weight, k_val[s * writes + w]);
        const float term = math::mul(both, decay_between<float>(run_later, level[earlier]));
        to[s] = math::add(to[s], term);
      }
      __syncwarp();  // the next run's lanes add to what these have added to
    }
  }

  float* const out = (is_reading ? all.readings : all.recalls) + (chunk * side + t) * side;
  for (int s = lane; s < side; s += 32) out[s] = to[s];
}

constexpr int block_columns = 64;
constexpr int tile_rows = 4;
constexpr std::int64_t most_tile_bytes = 96 * 1024;  // a block of any card may have as much

// One chunk's M.
struct scaled_recalls {
  const float *recalls, *beta;  // of the chunk, and of its first token
  std::int64_t side;
  int tokens;
  bool columns;

  __device__ bool has(int t, int s) const { return t < tokens && s < t; }
  __device__ float scale(int t, int s) const { return beta[columns ? s : t]; }
  __device__ float at(int t, int s) const {
    return has(t, s) ? math::mul(recalls[t * side + s], scale(t, s)) : 0.0f;
  }
};

// Four rows of M in shared memory, by s, beside the four that come next.
struct row_tiles {
  float4* both;
  int side, first;

  __device__ float4* of(int t0) const { return both + (t0 / tile_rows % 2) * side; }

  // Begins to copy what lies below the diagonal; an element is scaled by the thread that copied it.
  __device__ void bring(const scaled_recalls& m, int t0) const {
    float* const to = reinterpret_cast<float*>(of(t0));
    for (int s = first + static_cast<int>(threadIdx.x); s < t0 + tile_rows && s < side;
         s += block_columns) {
#pragma unroll
      for (int r = 0; r < tile_rows; ++r) {
        const bool there = m.has(t0 + r, s);
        __pipeline_memcpy_async(to + (s - first) * tile_rows + r,
                                m.recalls + (there ? (t0 + r) * m.side + s : 0), sizeof(float),
                                there ? 0 : sizeof(float));
      }
    }
    __pipeline_commit();
  }

  __device__ void scale(const scaled_recalls& m, int t0) const {
    for (int s = first + static_cast<int>(threadIdx.x); s < t0 + tile_rows && s < side;
         s += block_columns) {
      float* const four = reinterpret_cast<float*>(of(t0) + (s - first));
#pragma unroll
      for (int r = 0; r < tile_rows; ++r) {
        if (m.has(t0 + r, s)) four[r] = math::mul(four[r], m.scale(t0 + r, s));
      }
    }
  }
};

template <bool InShared>
__global__ void __launch_bounds__(block_columns)
    invert_grid(const float* recalls, const float* beta, float* inverse, bool columns,
                sdm_sizes sizes) {
  extern __shared__ float4 shared[];  // two tiles of four rows; then the block's columns, by row
  const auto side = static_cast<int>(sizes.chunk);
  const std::int64_t chunk = blockIdx.x;
  const std::int64_t p = chunk / sizes.chunks();
  const std::int64_t n = chunk % sizes.chunks();
  const auto tokens = static_cast<int>(sizes.tokens_in(n));
  const std::int64_t square = std::int64_t{side} * side;
  const scaled_recalls m{recalls + chunk * square, beta + p * sizes.tokens + n * sizes.chunk, side,
                         tokens, columns};
  const int first = blockIdx.y * block_columns;  // the rows above have zeros in these columns
  const int j = first + threadIdx.x;
  const int warp_first = first + threadIdx.x / 32 * 32;
  float* const to = inverse + chunk * square + j;  // only where j < side
  const row_tiles tiles{shared, side, first};
  float* const own = reinterpret_cast<float*>(shared + 2 * side) + threadIdx.x;

  if (j < side) {
    for (int t = 0; t < first; ++t) to[std::int64_t{t} * side] = 0.0f;
  }
  if constexpr (InShared) tiles.bring(m, first);
#pragma unroll 1
  for (int t0 = first; t0 < side; t0 += tile_rows) {
    const float4* tile = nullptr;
    if constexpr (InShared) {
      __syncthreads();  // the tile before has been read
      tiles.bring(m, t0 + tile_rows);
      __pipeline_wait_prior(1);
      tiles.scale(m, t0);
      __syncthreads();
      tile = tiles.of(t0);
    }
    if (j >= side) continue;
    const auto m_at = [&](int s) {
      if constexpr (InShared) return tile[s - first];
      return make_float4(m.at(t0, s), m.at(t0 + 1, s), m.at(t0 + 2, s), m.at(t0 + 3, s));
    };
    float sums[tile_rows] = {};
    const auto add_row = [&](int s) {
      const float x = InShared ? own[(s - first) * block_columns] : to[std::int64_t{s} * side];
      const float4 four = m_at(s);
      sums[0] = math::add(sums[0], math::mul(four.x, x));
      sums[1] = math::add(sums[1], math::mul(four.y, x));
      sums[2] = math::add(sums[2], math::mul(four.z, x));
      sums[3] = math::add(sums[3], math::mul(four.w, x));
    };
    // The columns of a warp begin at its first 32 rows, one after the other.
    const int all_begin = min(warp_first + 32, t0);
#pragma unroll 2
    for (int s = warp_first; s < all_begin; ++s) {
      if (s >= j) add_row(s);
    }
#pragma unroll 8
    for (int s = all_begin; s < t0; ++s) add_row(s);
#pragma unroll
    for (int r = 0; r < tile_rows; ++r) {
      const int t = t0 + r;
      if (t >= side) break;
      float x = 0.0f;
      if (t == j) x = 1.0f;
      if (t > j && t < tokens) x = -sums[r];
      to[std::int64_t{t} * side] = x;
      if constexpr (InShared) own[(t - first) * block_columns] = x;
      if (t < j) continue;
      const float4 four = m_at(t);
      if (r < 1) sums[1] = math::add(sums[1], math::mul(four.y, x));
      if (r < 2) sums[2] = math::add(sums[2], math::mul(four.z, x));
      if (r < 3) sums[3] = math::add(sums[3], math::mul(four.w, x));
    }
  }
}

}  // namespace

template <class X>
void pairs_cuda(cuda_call& call, read<std::int32_t> order, read<std::int32_t> place,
                read<std::int32_t> run_of, read<std::int32_t> runs, read<X> k_val, read<X> q_val,
                read<double> level, write<X> recalls, write<X> readings, sdm_sizes sizes) {
  check_pairs(order, place, run_of, runs, k_val, q_val, level, recalls, readings, sizes);
  if (sizes.tokens == 0) return;
  const auto bytes_of_row = static_cast<std::int64_t>(sizes.chunk * sizeof(float));
  const std::int64_t warps = std::min<std::int64_t>(most_warps, most_row_bytes / bytes_of_row);
  const std::int64_t rows = 2 * sizes.streams * sizes.chunks() * sizes.chunk;
  const auto blocks = static_cast<unsigned>((rows + warps - 1) / warps);
  const pairs_arrays all{order.data(), place.data(), run_of.data(),  runs.data(),    k_val.data(),
                         q_val.data(), level.data(), recalls.data(), readings.data()};
  pairs_grid<<<blocks, static_cast<unsigned>(warps * 32),
               static_cast<std::size_t>(warps * bytes_of_row), call.stream()>>>(
      all, sizes, static_cast<unsigned>(rows));
}

template <class X>
void invert_cuda(cuda_call& call, read<X> recalls, read<X> beta, write<X> inverse,
                 sdm_inverse which, sdm_sizes sizes) {
  check_invert(recalls, beta, inverse, sizes);
  if (sizes.tokens == 0) return;
  constexpr std::int64_t step_bytes = 2 * sizeof(float4) + block_columns * sizeof(float);
  const std::int64_t bytes = sizes.chunk * step_bytes;
  const bool in_shared = bytes <= most_tile_bytes;
  if (in_shared && bytes > most_row_bytes) {
    // The most that it is ever launched with, so that threads that set it agree. What it returns is
    // CUDA's last error too, at which the device looks.
    cudaFuncSetAttribute(&invert_grid<true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         static_cast<int>(most_tile_bytes));
  }
  const dim3 blocks{static_cast<unsigned>(sizes.streams * sizes.chunks()),
                    static_cast<unsigned>((sizes.chunk + block_columns - 1) / block_columns)};
  const auto grid = in_shared ? &invert_grid<true> : &invert_grid<false>;
  grid<<<blocks, block_columns, in_shared ? static_cast<std::size_t>(bytes) : 0, call.stream()>>>(
      recalls.data(), beta.data(), inverse.data(), which == sdm_inverse::scaled_columns, sizes);
}

template void pairs_cuda(cuda_call&, read<std::int32_t>, read<std::int32_t>, read<std::int32_t>,
                         read<std::int32_t>, read<float>, read<float>, read<double>, write<float>,
                         write<float>, sdm_sizes);
template void invert_cuda(cuda_call&, read<float>, read<float>, write<float>, sdm_inverse,
                          sdm_sizes);

}  // namespace reprise::REPRISE_BODIES::sdm
