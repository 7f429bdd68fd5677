// The backward of a chunk on CUDA. sdm_gather: row_sums.cuh. sdm_solve_back: triangle.cuh.
// sdm_rewind: a warp for each run and part of 256 columns, eight columns to a lane.
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
  __shared__ typename product::room room;
  product{c,
          room,
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

template <bool Aligned, class B, class G>
__global__ void __launch_bounds__(warps * 32, 7)
    rewind_grid(rewind_arguments a, B* bank, G* cotangent) {
  constexpr int batch = 2;
  const chunk_place& c = a.c;
  const unsigned blocks = (a.most_runs + warps - 1) / warps;  // of a stream
  const std::int32_t r = static_cast<std::int32_t>(blockIdx.x % blocks) * warps +
                         static_cast<std::int32_t>(threadIdx.x / 32);
  if (r >= a.most_runs) return;  // whole warps leave
  const std::int64_t p = blockIdx.x / blocks;
  const std::int64_t chunk = c.of_stream(p);
  const std::int64_t first_event = chunk * c.events;
  const std::int32_t begin = a.runs[first_event + chunk + r];
  const std::int32_t end = a.runs[first_event + chunk + r + 1];
  if (begin == end) return;
  const std::int32_t where = a.written[first_event + r];
  const std::int64_t row = a.rows[first_event + r] * c.width;
  const float keep = a.keep[first_event + r];
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const std::int64_t at = std::int64_t{blockIdx.y} * part_columns + lane * lane_columns;
  const std::int64_t parts = gridDim.y;
  const std::int64_t part = blockIdx.y;

  // Loads first, in the order in which they wait for one another: rows and the run's order, then
  // what its events bring. Nothing is used before those of the first batch are under way.
  eight<G> behind;  // G
  load_stored<Aligned>(cotangent + row, at, c.width, behind);
  eight<B> before;  // M
  if (where < 0) {
    load_stored<Aligned>(bank + row, at, c.width, before);
  } else {
    restore_eight<Aligned>(a.format,
                           a.saved + (chunk * c.chunk * c.writes + where) * a.saved_stride, at,
                           c.width, before);
  }

  // A lane looks up one event of 32 for all.
  std::int32_t my_event = 0;
  float my_weight = 0.0f;  // of its row in the cotangent: the negative of a write's head
  float my_strength = 1.0f;
  std::int32_t events[batch];  // -1: there are no more
  float value[batch][8];
  float error[batch][8];
  const auto fetch = [&](std::int32_t first) {
    if (first < end && (first - begin) % 32 == 0) {
      my_event = first + lane < end ? a.order[first_event + first + lane] : -1;
      my_strength = 1.0f;
      if (my_event >= 0) {
        my_weight = a.head[first_event + my_event];
        if (c.is_write(my_event)) {
          my_weight = -my_weight;
          my_strength = a.beta[c.token(p, c.token_of(my_event))];
        }
      }
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const std::int32_t event = __shfl_sync(all_lanes, my_event, (first - begin + k) % 32);
      events[k] = first + k < end ? event : -1;
      if (events[k] < 0) continue;  // the same for the whole warp
      const std::int64_t token = c.token(p, c.token_of(event)) * c.width;
      const bool writes = c.is_write(event);
      load_floats<Aligned>((writes ? a.m : a.dy) + token, at, c.width, value[k]);
      if (writes) load_floats<Aligned>(a.errors + token, at, c.width, error[k]);
    }
  };
  fetch(begin);

  if (where >= 0) store_stored<Aligned>(bank + row, at, c.width, before);
  float sum[8];
  widen_eight(before, sum);
  const float both = ops::fold_warp(lane_dot(behind, sum));
  if (lane == 0) a.of_both[(first_event + r) * parts + part] = both;
#pragma unroll
  for (int j = 0; j < 8; ++j) sum[j] = math::mul(keep, widened_element(behind, j));

  for (std::int32_t first = begin; first < end; first += batch) {
    std::int32_t done[batch];
    float state[batch];
    float along[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const int of = (first - begin + k) % 32;
      const float weight = __shfl_sync(all_lanes, my_weight, of);
      const float strength = __shfl_sync(all_lanes, my_strength, of);
      done[k] = events[k];
      state[k] = 0.0f;
      along[k] = 0.0f;
      if (done[k] < 0) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        value[k][j] = math::mul(strength, value[k][j]);  // a read's is 1: nothing changes
        sum[j] = math::add(sum[j], math::mul(weight, value[k][j]));
      }
      state[k] = lane_dot(before, value[k]);
      if (!c.is_write(done[k])) continue;
#pragma unroll
      for (int j = 0; j < 8; ++j) error[k][j] = math::mul(strength, error[k][j]);
      along[k] = lane_dot(behind, error[k]);
    }
    fetch(first + batch);  // under way while lanes are added
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      state[k] = ops::fold_warp(state[k]);
      along[k] = ops::fold_warp(along[k]);
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      if (done[k] < 0 || lane != 0) continue;
      const std::int64_t to = (first_event + done[k]) * parts + part;
      a.of_state[to] = state[k];
      a.of_cotangent[to] = along[k];
    }
  }
  narrow_eight(sum, behind);
  store_stored<Aligned>(cotangent + row, at, c.width, behind);
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
  each_triangle_grid(c, [&](dim3 blocks, std::int64_t p) {
    grid<<<blocks, triangle_threads, 0, on.stream()>>>(c, of_readings, of_deltas, m.data(), p);
  });
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
  const dim3 blocks{static_cast<unsigned>(c.streams * ((most + warps - 1) / warps)),
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
