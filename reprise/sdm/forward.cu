// The forward of a chunk on CUDA. sdm_recall: row_sums.cuh. sdm_solve: triangle.cuh. sdm_write: a
// warp for each run and part of 256 columns, eight columns to a lane.
//
// Memory bound: at C = 128, W = R = 64 and 768 columns of bf16 the rows are 25 MB that recall reads
// and, kept as they are stored, 38 MB that write reads and writes.
#include "reprise/cuda/call.cuh"
#include "reprise/sdm/chunk_views.hpp"
#include "reprise/sdm/forward.hpp"
#include "reprise/sdm/row_sums.cuh"
#include "reprise/sdm/saved_row.cuh"
#include "reprise/sdm/triangle.cuh"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

template <bool Aligned, class B>
__global__ void __launch_bounds__(32)
    recall_grid(chunk_place c, const B* bank, const std::int32_t* k_idx, const std::int32_t* q_idx,
                const float* head, const float* v, float* errors, float* readings) {
  const bool reads = blockIdx.x % 2 != 0;
  const std::int64_t item = blockIdx.x / 2;
  const std::int64_t p = item / c.count;
  const auto t = static_cast<std::int32_t>(item % c.count);
  const std::int64_t token = c.token(p, t);
  const float* const weights =
      head + c.of_stream(p) * c.events + std::int64_t{t} * c.token_events();
  const std::int64_t at = std::int64_t{blockIdx.y} * part_columns + threadIdx.x * lane_columns;
  float sum[8];
  if (reads) {
    sum_rows<Aligned>(c, p, bank, q_idx + token * c.reads, weights + c.writes, c.reads, at, sum);
    store_floats<Aligned>(readings + token * c.width, at, c.width, sum);
    return;
  }
  float value[8];
  load_floats<Aligned>(v + token * c.width, at, c.width, value);
  sum_rows<Aligned>(c, p, bank, k_idx + token * c.writes, weights, c.writes, at, sum);
#pragma unroll
  for (int i = 0; i < 8; ++i) value[i] = math::sub(value[i], sum[i]);
  store_floats<Aligned>(errors + token * c.width, at, c.width, value);
}

template <bool Whole>
__global__ void __launch_bounds__(triangle_threads)
    solve_grid(chunk_place c, triangle_product inverse, triangle_product pairs, float* errors,
               float* readings, std::int64_t first_stream) {
  using product = triangle<false, Whole>;
  __shared__ typename product::room room;
  product{c,
          room,
          inverse,
          pairs,
          first_stream + blockIdx.y,
          std::int64_t{blockIdx.x} * triangle_columns}
      .run([&](int which, std::int64_t at, float sum) {
        if (which == 0) {
          errors[at] = sum;
        } else {
          readings[at] = math::add(readings[at], sum);
        }
      });
}

struct write_arguments {
  chunk_place c;
  saved_rows format;
  std::int64_t saved_stride;  // 0: nothing is saved
  std::int32_t most_runs;
  const std::int32_t *order, *runs, *rows, *written;
  const float *tail, *keep, *beta, *errors;
  std::uint8_t* saved;
};

// The run of this warp, when it has a write.
struct written_run {
  bool there = false;
  std::int64_t p = 0;
  std::int64_t run = 0;    // of all
  std::int64_t event = 0;  // of all, the chunk's first
  std::int64_t row = 0;
  std::int64_t saved = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

constexpr int warps = 4;

__device__ written_run find_run(const write_arguments& a, unsigned block) {
  written_run of;
  const unsigned blocks = (a.most_runs + warps - 1) / warps;  // of a stream
  const std::int32_t r = static_cast<std::int32_t>(block % blocks) * warps +
                         static_cast<std::int32_t>(threadIdx.x / 32);
  if (r >= a.most_runs) return of;
  of.p = block / blocks;
  const std::int64_t chunk = a.c.of_stream(of.p);
  of.event = chunk * a.c.events;
  of.run = of.event + r;
  of.begin = a.runs[of.run + chunk];
  of.end = a.runs[of.run + chunk + 1];
  const std::int32_t where = a.written[of.run];
  of.there = of.begin != of.end && where >= 0;
  if (!of.there) return of;
  of.row = a.rows[of.run];
  of.saved = (chunk * a.c.chunk * a.c.writes + where) * a.saved_stride;
  return of;
}

template <bool Aligned, class B>
__global__ void __launch_bounds__(warps * 32) fp8_scales(write_arguments a, const B* bank) {
  const written_run run = find_run(a, blockIdx.x);
  if (!run.there) return;  // whole warps leave
  const B* const row = bank + run.row * a.c.width;
  std::uint32_t largest = 0;
#pragma unroll 4
  for (std::int64_t at = threadIdx.x % 32 * lane_columns; at < a.c.width; at += part_columns) {
    eight<B> stored;
    float x[8];
    load_stored<Aligned>(row, at, a.c.width, stored);
    widen_eight(stored, x);
    largest = max(largest, largest_of(x));
  }
  largest = largest_of_lanes<32>(largest);
  if (threadIdx.x % 32 != 0) return;
  save_scale<Aligned>(a.saved + run.saved + scales_begin(a.format, a.c.width),
                      scale_of(largest, largest_e4m3));
}

template <bool Aligned, bool Quantised, class B>
__global__ void __launch_bounds__(warps * 32, 7) write_grid(write_arguments a, B* bank) {
  constexpr int batch = 4;
  const written_run run = find_run(a, blockIdx.x);
  if (!run.there) return;  // whole warps leave
  const chunk_place& c = a.c;
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const std::int64_t at = std::int64_t{blockIdx.y} * part_columns + lane * lane_columns;
  B* const row = bank + run.row * c.width;
  // Loads first, in the order in which they wait for one another: the row and the run's order, then
  // what its events bring. Nothing is used before those of the first batch are under way.
  eight<B> stored;
  load_stored<Aligned>(row, at, c.width, stored);
  const float keep = a.keep[run.run];

  // A lane looks up one event of 32 for all.
  std::int64_t my_token = 0;
  float my_tail = 0.0f;
  float my_strength = 0.0f;
  std::int32_t ahead = run.begin;  // what was not looked up yet
  unsigned left = 0;               // lanes whose writes were not fetched yet
  int of[batch];                   // lanes; -1: there are no more
  float error[batch][8];
  const auto fetch = [&] {
    for (; left == 0 && ahead < run.end; ahead += 32) {
      bool writes = false;
      if (ahead + lane < run.end) {
        const std::int32_t event = a.order[run.event + ahead + lane];
        writes = c.is_write(event);
        my_token = c.token(run.p, c.token_of(event));
        my_tail = a.tail[run.event + event];
        my_strength = a.beta[my_token];
      }
      left = __ballot_sync(all_lanes, writes);
    }
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      of[i] = __ffs(static_cast<int>(left)) - 1;
      left &= left - 1;
      const std::int64_t token = __shfl_sync(all_lanes, my_token, of[i] & 31);
      if (of[i] >= 0) load_floats<Aligned>(a.errors + token * c.width, at, c.width, error[i]);
    }
  };
  fetch();

  float sum[8];
  widen_eight(stored, sum);
  if (a.saved_stride != 0) {
    save_eight<Aligned, Quantised>(a.format, a.saved + run.saved, at, c.width, stored, sum);
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) sum[j] = math::mul(keep, sum[j]);
  while (of[0] >= 0) {
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      const float tail = __shfl_sync(all_lanes, my_tail, of[i] & 31);
      const float strength = __shfl_sync(all_lanes, my_strength, of[i] & 31);
      if (of[i] < 0) continue;  // the same for the whole warp
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        sum[j] = math::add(sum[j], math::mul(tail, math::mul(strength, error[i][j])));
      }
    }
    fetch();
  }
  narrow_eight(sum, stored);
  store_stored<Aligned>(row, at, c.width, stored);
}

}  // namespace

template <class B, class X>
void recall_cuda(cuda_call& on, read<B> bank, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                 read<X> head, read<X> v, write<X> errors, write<X> readings, sdm_sizes sizes,
                 std::int64_t n) {
  check_recall(sizes, n, bank, k_idx, q_idx, head, v, errors, readings);
  const chunk_place c{sizes, n};
  const bool aligned =
      ops::in_eights(c.width, {bank.data(), v.data(), errors.data(), readings.data()});
  const auto grid = aligned ? &recall_grid<true, B> : &recall_grid<false, B>;
  grid<<<row_sum_blocks(c, 2), 32, 0, on.stream()>>>(c, bank.data(), k_idx.data(), q_idx.data(),
                                                     head.data(), v.data(), errors.data(),
                                                     readings.data());
}

template <class X>
void solve_cuda(cuda_call& on, read<X> inverse, read<X> pairs, read<X> beta, inout<X> errors,
                inout<X> readings, sdm_sizes sizes, std::int64_t n) {
  check_solve(sizes, n, inverse, pairs, beta, errors, readings);
  const chunk_place c{sizes, n};
  const triangle_product of_errors{inverse.data(), errors.data(), nullptr};
  const triangle_product of_readings{pairs.data(), errors.data(), beta.data()};
  const auto grid =
      in_fours(c, inverse.data(), pairs.data()) ? &solve_grid<true> : &solve_grid<false>;
  each_triangle_grid(c, [&](dim3 blocks, std::int64_t p) {
    grid<<<blocks, triangle_threads, 0, on.stream()>>>(c, of_errors, of_readings, errors.data(),
                                                       readings.data(), p);
  });
}

template <class B, class X>
void write_cuda(cuda_call& on, read<std::int32_t> order, read<std::int32_t> runs,
                read<std::int32_t> rows, read<std::int32_t> written, read<X> tail, read<X> keep,
                read<X> beta, read<X> errors, inout<B> bank, write<std::uint8_t> saved,
                saved_rows format, sdm_sizes sizes, std::int64_t n) {
  check_write(sizes, n, order, runs, rows, written, tail, keep, beta, errors, bank, saved, format);
  const chunk_place c{sizes, n};
  const auto most = static_cast<std::int32_t>(c.most_runs());
  const std::int64_t stride =
      saved.size() == 0 ? 0 : row_bytes(format, c.width, static_cast<std::int64_t>(sizeof(B)));
  const write_arguments arguments{
      c,           format,        stride,         most,        order.data(),
      runs.data(), rows.data(),   written.data(), tail.data(), keep.data(),
      beta.data(), errors.data(), saved.data()};
  const bool aligned = ops::in_eights(c.width, {bank.data(), errors.data(), saved.data()});
  const auto blocks = static_cast<unsigned>(c.streams * ((most + warps - 1) / warps));
  if (format == saved_rows::fp8 && stride != 0) {
    const auto scales = aligned ? &fp8_scales<true, B> : &fp8_scales<false, B>;
    scales<<<blocks, warps * 32, 0, on.stream()>>>(arguments, bank.data());
  }
  const bool quantised = format != saved_rows::as_stored;
  const auto grid = aligned ? quantised ? &write_grid<true, true, B> : &write_grid<true, false, B>
                    : quantised ? &write_grid<false, true, B>
                                : &write_grid<false, false, B>;
  grid<<<dim3{blocks, static_cast<unsigned>(parts_of(c.width))}, warps * 32, 0, on.stream()>>>(
      arguments, bank.data());
}

template void recall_cuda(cuda_call&, read<float>, read<std::int32_t>, read<std::int32_t>,
                          read<float>, read<float>, write<float>, write<float>, sdm_sizes,
                          std::int64_t);
template void recall_cuda(cuda_call&, read<bf16>, read<std::int32_t>, read<std::int32_t>,
                          read<float>, read<float>, write<float>, write<float>, sdm_sizes,
                          std::int64_t);
template void solve_cuda(cuda_call&, read<float>, read<float>, read<float>, inout<float>,
                         inout<float>, sdm_sizes, std::int64_t);
template void write_cuda(cuda_call&, read<std::int32_t>, read<std::int32_t>, read<std::int32_t>,
                         read<std::int32_t>, read<float>, read<float>, read<float>, read<float>,
                         inout<float>, write<std::uint8_t>, saved_rows, sdm_sizes, std::int64_t);
template void write_cuda(cuda_call&, read<std::int32_t>, read<std::int32_t>, read<std::int32_t>,
                         read<std::int32_t>, read<float>, read<float>, read<float>, read<float>,
                         inout<bf16>, write<std::uint8_t>, saved_rows, sdm_sizes, std::int64_t);

}  // namespace reprise::REPRISE_BODIES::sdm
