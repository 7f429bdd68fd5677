// The backward of a chunk on CUDA. sdm_gather: row_sums.cuh. sdm_solve_back: triangle.cuh.
// sdm_rewind: a warp for eight runs and a part of 256 columns, eight columns to a lane; rows of two
// runs are under way at once.
//
// Memory bound: at C = 128, W = R = 64 and 768 columns of bf16 with a cotangent of bf16, the rows
// are 13 MB that gather reads and 88 MB that rewind reads and writes, each once.
#include "reprise/cuda/call.cuh"
#include "reprise/sdm/backward.hpp"
#include "reprise/sdm/chunk_views.hpp"
#include "reprise/sdm/row_sums.cuh"
#include "reprise/sdm/saved_row.cuh"
#include "reprise/sdm/triangle.cuh"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

template <bool Aligned, class G>
__global__ void __launch_bounds__(32)
    gather_grid(chunk_place c, const G* cotangent, const std::int32_t* k_idx, const float* tail,
                float* m) {
  const std::int64_t p = std::int64_t{blockIdx.x} / c.count;
  const auto t = static_cast<std::int32_t>(std::int64_t{blockIdx.x} % c.count);
  const std::int64_t token = c.token(p, t);
  const float* const weights =
      tail + c.of_stream(p) * c.events + std::int64_t{t} * c.token_events();
  const std::int64_t at = std::int64_t{blockIdx.y} * part_columns + threadIdx.x * lane_columns;
  float sum[8];
  sum_rows<Aligned>(c, p, cotangent, k_idx + token * c.writes, weights, c.writes, at, sum);
  store_floats<Aligned>(m + token * c.width, at, c.width, sum);
}

template <bool Whole>
__global__ void __launch_bounds__(triangle_threads)
    solve_back_grid(chunk_place c, triangle_product pairs, triangle_product inverse, float* m,
                    std::int64_t first_stream) {
  using product = triangle<true, Whole>;
  extern __shared__ float4 shared[];
  product{c,
          *reinterpret_cast<typename product::room*>(shared),
          pairs,
          inverse,
          first_stream + blockIdx.y,
          std::int64_t{blockIdx.x} * triangle_columns}
      .run([&](int which, std::int64_t at, float sum) {
        m[at] = which == 0 ? math::add(m[at], sum) : sum;
      });
}

struct rewind_arguments {
  chunk_place c;
  saved_rows format;
  std::int64_t saved_stride;
  std::int32_t most_runs;
  const std::int32_t *order, *runs, *rows, *written;
  const float *head, *keep, *beta, *dy, *m, *errors;
  const std::uint8_t* saved;
  float *of_state, *of_cotangent, *of_both;
};

constexpr int warps = 4;
constexpr int group = 8;  // runs of a warp
constexpr int batch = 2;  // of them, whose rows are under way at once

// Blocks of a stream.
__host__ __device__ inline unsigned blocks_of_runs(std::int32_t most_runs) {
  return (static_cast<unsigned>(most_runs) + warps * group - 1) / (warps * group);
}

// An event as its run's row sees it.
struct rewound_event {
  std::int32_t event = 0;
  std::int32_t t = 0;
  bool writes = false;
  float weight = 0.0f;    // of its row in the cotangent: the negative of a write's head
  float strength = 1.0f;  // of a write; a read's 1 changes nothing

  __device__ void look_up(const rewind_arguments& a, std::int64_t p, std::int64_t first_event) {
    t = a.c.token_of(event);
    writes = a.c.is_write(event);
    weight = a.head[first_event + event];
    if (!writes) return;
    weight = -weight;
    strength = a.beta[a.c.token(p, t)];
  }

  // That of another lane.
  __device__ rewound_event of_lane(int lane) const {
    return {__shfl_sync(all_lanes, event, lane), __shfl_sync(all_lanes, t, lane),
            __shfl_sync(all_lanes, static_cast<int>(writes), lane) != 0,
            __shfl_sync(all_lanes, weight, lane), __shfl_sync(all_lanes, strength, lane)};
  }
};

// What a lane looks up of a run. Loads wait for one another in three steps, which a warp so takes
// once for all its runs.
struct rewound_run {
  bool there = false;
  std::int32_t row = 0;
  std::int32_t where = 0;  // among the saved rows of its chunk; -1: nothing was written
  std::int32_t next = 0;   // of its events in their order, behind the first
  std::int32_t end = 0;
  float keep = 0.0f;
  rewound_event first;
};

template <bool Aligned, class B, class G>
struct rewind_part {
  const rewind_arguments& a;
  std::int64_t p, chunk, first_event, at;

  __device__ rewound_run look_up() const {
    rewound_run of;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const std::int32_t r = first_run() + lane;
    if (lane >= group || r >= a.most_runs) return of;
    const std::int64_t run = first_event + r;
    of.next = a.runs[run + chunk];
    of.end = a.runs[run + chunk + 1];
    of.row = a.rows[run];
    of.where = a.written[run];
    of.keep = a.keep[run];
    of.there = of.next != of.end;
    if (!of.there) return of;
    of.first.event = a.order[first_event + of.next++];
    of.first.look_up(a, p, first_event);
    return of;
  }

  __device__ std::int32_t first_run() const {
    const unsigned blocks = blocks_of_runs(a.most_runs);
    return static_cast<std::int32_t>((blockIdx.x % blocks * warps + threadIdx.x / 32) * group);
  }

  __device__ void load_event(const rewound_event& of, float (&value)[8], float (&error)[8]) const {
    const std::int64_t token = a.c.token(p, of.t) * a.c.width;
    load_floats<Aligned>((of.writes ? a.m : a.dy) + token, at, a.c.width, value);
    if (of.writes) load_floats<Aligned>(a.errors + token, at, a.c.width, error);
  }

  // Adds an event to the cotangent of its row, and leaves this lane's shares of its products.
  __device__ void add_event(const rewound_event& of, const eight<B>& before, const eight<G>& behind,
                            float (&value)[8], float (&error)[8], float (&sum)[8], float& state,
                            float& along) const {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      value[j] = math::mul(of.strength, value[j]);
      sum[j] = math::add(sum[j], math::mul(of.weight, value[j]));
    }
    state = lane_dot(before, value);
    along = 0.0f;
    if (!of.writes) return;
#pragma unroll
    for (int j = 0; j < 8; ++j) error[j] = math::mul(of.strength, error[j]);
    along = lane_dot(behind, error);
  }

  __device__ void put_event(const rewound_event& of, float state, float along) const {
    if (threadIdx.x % 32 != 0) return;
    const std::int64_t to = (first_event + of.event) * gridDim.y + blockIdx.y;
    a.of_state[to] = state;
    a.of_cotangent[to] = along;
  }

  // The events of a run behind its first; mostly there are none or one.
  __device__ void add_later_events(std::int32_t next, std::int32_t end, const eight<B>& before,
                                   const eight<G>& behind, float (&sum)[8]) const {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
#pragma unroll 1
    for (std::int32_t ahead = next; ahead < end; ahead += 32) {
      rewound_event mine;  // a lane looks up one event of 32 for all
      if (ahead + lane < end) {
        mine.event = a.order[first_event + ahead + lane];
        mine.look_up(a, p, first_event);
      }
      const std::int32_t here = min(end - ahead, 32);
      float value[8];
      float error[8];
      rewound_event now = mine.of_lane(0);
      load_event(now, value, error);
#pragma unroll 1
      for (std::int32_t i = 0; i < here; ++i) {
        const rewound_event done = now;
        float state;
        float along;
        add_event(done, before, behind, value, error, sum, state, along);
        if (i + 1 < here) {  // under way while lanes are added
          now = mine.of_lane(i + 1);
          load_event(now, value, error);
        }
        put_event(done, ops::fold_warp(state), ops::fold_warp(along));
      }
    }
  }
};

template <bool Aligned, class B, class G>
__global__ void __launch_bounds__(warps * 32, 4)
    rewind_grid(rewind_arguments a, B* bank, G* cotangent) {
  const std::int64_t p = blockIdx.x / blocks_of_runs(a.most_runs);
  const std::int64_t chunk = a.c.of_stream(p);
  const std::int64_t at = std::int64_t{blockIdx.y} * part_columns + threadIdx.x % 32 * lane_columns;
  const rewind_part<Aligned, B, G> part{a, p, chunk, chunk * a.c.events, at};
  const rewound_run mine = part.look_up();
  const std::int64_t width = a.c.width;
  const int runs = __popc(__ballot_sync(all_lanes, mine.there));  // the first ones
#pragma unroll 1
  for (int begin = 0; begin < runs; begin += batch) {
    // Loads of all runs first, of which nothing is used before they are under way.
    eight<G> behind[batch];  // G
    eight<B> before[batch];  // M
    rewound_event first[batch];
    float value[batch][8];
    float error[batch][8];
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const int lane = begin + i;
      const std::int64_t row = std::int64_t{__shfl_sync(all_lanes, mine.row, lane)} * width;
      const std::int64_t where = __shfl_sync(all_lanes, mine.where, lane);
      first[i] = mine.first.of_lane(lane);
      if (lane >= runs) continue;  // the same for the whole warp
      load_stored<Aligned>(cotangent + row, at, width, behind[i]);
      if (where < 0) {
        load_stored<Aligned>(bank + row, at, width, before[i]);
      } else {
        restore_eight<Aligned>(a.format,
                               a.saved + (chunk * a.c.chunk * a.c.writes + where) * a.saved_stride,
                               at, width, before[i]);
      }
      part.load_event(first[i], value[i], error[i]);
    }
    float sum[batch][8];
    float both[batch] = {};
    float state[batch] = {};
    float along[batch] = {};
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      if (begin + i >= runs) continue;
      widen_eight(before[i], sum[i]);
      both[i] = lane_dot(behind[i], sum[i]);
      const float keep = __shfl_sync(all_lanes, mine.keep, begin + i);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[i][j] = math::mul(keep, widened_element(behind[i], j));
      part.add_event(first[i], before[i], behind[i], value[i], error[i], sum[i], state[i],
                     along[i]);
    }
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      both[i] = ops::fold_warp(both[i]);
      state[i] = ops::fold_warp(state[i]);
      along[i] = ops::fold_warp(along[i]);
    }
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const int lane = begin + i;
      if (lane >= runs) continue;
      if (threadIdx.x % 32 == 0) {
        const std::int64_t run = part.first_event + part.first_run() + lane;
        a.of_both[run * gridDim.y + blockIdx.y] = both[i];
      }
      part.put_event(first[i], state[i], along[i]);
      part.add_later_events(__shfl_sync(all_lanes, mine.next, lane),
                            __shfl_sync(all_lanes, mine.end, lane), before[i], behind[i], sum[i]);
      const std::int64_t row = std::int64_t{__shfl_sync(all_lanes, mine.row, lane)} * width;
      if (__shfl_sync(all_lanes, mine.where, lane) >= 0) {
        store_stored<Aligned>(bank + row, at, width, before[i]);
      }
      narrow_eight(sum[i], behind[i]);
      store_stored<Aligned>(cotangent + row, at, width, behind[i]);
    }
  }
}

}  // namespace

template <class G, class X>
void gather_cuda(cuda_call& on, read<G> cotangent, read<std::int32_t> k_idx, read<X> tail,
                 write<X> m, sdm_sizes sizes, std::int64_t n) {
  check_gather(sizes, n, cotangent, k_idx, tail, m);
  const chunk_place c{sizes, n};
  const auto grid = ops::in_eights(c.width, {cotangent.data(), m.data()}) ? &gather_grid<true, G>
                                                                          : &gather_grid<false, G>;
  grid<<<row_sum_blocks(c, 1), 32, 0, on.stream()>>>(c, cotangent.data(), k_idx.data(), tail.data(),
                                                     m.data());
}

template <class X>
void solve_back_cuda(cuda_call& on, read<X> inverse, read<X> pairs, read<X> dy, inout<X> m,
                     sdm_sizes sizes, std::int64_t n) {
  check_solve_back(sizes, n, inverse, pairs, dy, m);
  const chunk_place c{sizes, n};
  const triangle_product of_readings{pairs.data(), dy.data(), nullptr};
  const triangle_product of_deltas{inverse.data(), m.data(), nullptr};
  const auto grid =
      in_fours(c, inverse.data(), pairs.data()) ? &solve_back_grid<true> : &solve_back_grid<false>;
  launch_triangle<triangle<true, true>::room>(grid, on.stream(), c, of_readings, of_deltas,
                                              m.data());
}

template <class B, class G, class X>
void rewind_cuda(cuda_call& on, read<std::int32_t> order, read<std::int32_t> runs,
                 read<std::int32_t> rows, read<std::int32_t> written, read<X> head, read<X> keep,
                 read<X> beta, read<X> dy, read<X> m, read<X> errors, read<std::uint8_t> saved,
                 inout<B> bank, inout<G> cotangent, write<X> of_state, write<X> of_cotangent,
                 write<X> of_both, saved_rows format, sdm_sizes sizes, std::int64_t n) {
  check_rewind(sizes, n, order, runs, rows, written, head, keep, beta, dy, m, errors, saved, bank,
               cotangent, of_state, of_cotangent, of_both, format);
  const chunk_place c{sizes, n};
  const auto most = static_cast<std::int32_t>(c.most_runs());
  const rewind_arguments arguments{c,
                                   format,
                                   row_bytes(format, c.width, static_cast<std::int64_t>(sizeof(B))),
                                   most,
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
                                   of_state.data(),
                                   of_cotangent.data(),
                                   of_both.data()};
  const bool aligned = ops::in_eights(
      c.width, {bank.data(), cotangent.data(), dy.data(), m.data(), errors.data(), saved.data()});
  const dim3 blocks{static_cast<unsigned>(c.streams) * blocks_of_runs(most),
                    static_cast<unsigned>(parts_of(c.width))};
  const auto grid = aligned ? &rewind_grid<true, B, G> : &rewind_grid<false, B, G>;
  grid<<<blocks, warps * 32, 0, on.stream()>>>(arguments, bank.data(), cotangent.data());
}

template void gather_cuda(cuda_call&, read<float>, read<std::int32_t>, read<float>, write<float>,
                          sdm_sizes, std::int64_t);
template void gather_cuda(cuda_call&, read<bf16>, read<std::int32_t>, read<float>, write<float>,
                          sdm_sizes, std::int64_t);
template void solve_back_cuda(cuda_call&, read<float>, read<float>, read<float>, inout<float>,
                              sdm_sizes, std::int64_t);

#define REPRISE_REWIND(B, G)                                                                    \
  template void rewind_cuda(cuda_call&, read<std::int32_t>, read<std::int32_t>,                 \
                            read<std::int32_t>, read<std::int32_t>, read<float>, read<float>,   \
                            read<float>, read<float>, read<float>, read<float>,                 \
                            read<std::uint8_t>, inout<B>, inout<G>, write<float>, write<float>, \
                            write<float>, saved_rows, sdm_sizes, std::int64_t)
REPRISE_REWIND(float, float);
REPRISE_REWIND(bf16, bf16);
REPRISE_REWIND(bf16, float);
#undef REPRISE_REWIND

}  // namespace reprise::REPRISE_BODIES::sdm
