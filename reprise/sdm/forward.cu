// The forward of a chunk on CUDA. sdm_recall: row_sums.cuh. sdm_solve: triangle.cuh. sdm_write: a
// warp for eight runs and a part of 256 columns, eight columns to a lane; rows of four runs of
// bf16 are under way at once.
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
  extern __shared__ float4 shared[];
  product{c,
          *reinterpret_cast<typename product::room*>(shared),
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

  __device__ std::uint8_t* saved_row(std::int64_t of_chunk, std::int64_t where) const {
    return saved + (of_chunk * c.chunk * c.writes + where) * saved_stride;
  }
};

// What a write adds to its row.
__device__ inline void add_write(float tail, float strength, const float (&error)[8],
                                 float (&sum)[8]) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    sum[j] = math::add(sum[j], math::mul(tail, math::mul(strength, error[j])));
  }
}

constexpr int warps = 4;
constexpr int group = 8;  // runs of a warp

// Blocks of a stream.
__host__ __device__ inline unsigned blocks_of_runs(std::int32_t most_runs) {
  return (static_cast<unsigned>(most_runs) + warps * group - 1) / (warps * group);
}

// What a lane looks up of a run that has a write. Loads wait for one another in three steps, which
// a warp so takes once for all its runs.
struct written_run {
  bool there = false;
  std::int32_t row = 0;
  std::int32_t where = 0;  // among the saved rows of its chunk
  std::int32_t next = 0;   // of its events in their order, behind the first write
  std::int32_t end = 0;
  float keep = 0.0f;
  // Of the first write.
  std::int32_t t = 0;
  float tail = 0.0f;
  float strength = 0.0f;
};

// Where the runs of a warp lie.
struct run_place {
  std::int64_t p, chunk, event;
  std::int32_t first;

  __device__ explicit run_place(const write_arguments& a) {
    const unsigned blocks = blocks_of_runs(a.most_runs);
    p = blockIdx.x / blocks;
    chunk = a.c.of_stream(p);
    event = chunk * a.c.events;
    first = static_cast<std::int32_t>((blockIdx.x % blocks * warps + threadIdx.x / 32) * group);
  }
};

__device__ inline written_run look_up(const write_arguments& a, const run_place& at) {
  written_run of;
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
  const std::int32_t r = at.first + lane;
  if (lane >= group || r >= a.most_runs) return of;
  const std::int64_t run = at.event + r;
  of.where = a.written[run];
  std::int32_t i = a.runs[run + at.chunk];
  of.end = a.runs[run + at.chunk + 1];
  of.row = a.rows[run];
  of.keep = a.keep[run];
  of.there = i != of.end && of.where >= 0;
  if (!of.there) return of;
  std::int32_t event = a.order[at.event + i];
  while (!a.c.is_write(event)) event = a.order[at.event + ++i];
  of.next = i + 1;
  of.t = a.c.token_of(event);
  of.tail = a.tail[at.event + event];
  of.strength = a.beta[a.c.token(at.p, of.t)];
  return of;
}

// Adds the writes of a run from `next` on; mostly there are none.
template <bool Aligned>
__device__ void add_later_writes(const write_arguments& a, const run_place& of, std::int32_t next,
                                 std::int32_t end, std::int64_t at, float (&sum)[8]) {
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
#pragma unroll 1
  for (std::int32_t ahead = next; ahead < end; ahead += 32) {
    // A lane looks up one event of 32 for all.
    bool writes = false;
    std::int64_t my_token = 0;
    float my_tail = 0.0f;
    float my_strength = 0.0f;
    if (ahead + lane < end) {
      const std::int32_t event = a.order[of.event + ahead + lane];
      writes = a.c.is_write(event);
      my_token = a.c.token(of.p, a.c.token_of(event));
      my_tail = a.tail[of.event + event];
      my_strength = a.beta[my_token];
    }
    unsigned left = __ballot_sync(all_lanes, writes);
#pragma unroll 1
    while (left != 0) {
      constexpr int pair = 2;
      int from[pair];
      float error[pair][8];
#pragma unroll
      for (int i = 0; i < pair; ++i) {
        from[i] = __ffs(static_cast<int>(left)) - 1;
        left &= left - 1;
        const std::int64_t token = __shfl_sync(all_lanes, my_token, from[i] & 31);
        if (from[i] >= 0) {
          load_floats<Aligned>(a.errors + token * a.c.width, at, a.c.width, error[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < pair; ++i) {
        const float tail = __shfl_sync(all_lanes, my_tail, from[i] & 31);
        const float strength = __shfl_sync(all_lanes, my_strength, from[i] & 31);
        if (from[i] >= 0) add_write(tail, strength, error[i], sum);
      }
    }
  }
}

template <bool Aligned, class B>
__global__ void __launch_bounds__(warps * 32) fp8_scales(write_arguments a, const B* bank) {
  const run_place of{a};
  const written_run mine = look_up(a, of);
#pragma unroll 1
  for (unsigned todo = __ballot_sync(all_lanes, mine.there); todo != 0; todo &= todo - 1) {
    const int from = __ffs(static_cast<int>(todo)) - 1;
    const std::int64_t where = __shfl_sync(all_lanes, mine.where, from);
    const B* const row = bank + std::int64_t{__shfl_sync(all_lanes, mine.row, from)} * a.c.width;
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
    if (threadIdx.x % 32 != 0) continue;
    save_scale<Aligned>(a.saved_row(of.chunk, where) + scales_begin(a.format, a.c.width),
                        scale_of(largest, largest_e4m3));
  }
}

template <bool Aligned, bool Quantised, class B>
__global__ void __launch_bounds__(warps * 32, 5) write_grid(write_arguments a, B* bank) {
  constexpr int batch = 8 / static_cast<int>(sizeof(B));  // runs whose rows are under way at once
  const run_place of{a};
  const written_run mine = look_up(a, of);
  const std::int64_t width = a.c.width;
  const std::int64_t at = std::int64_t{blockIdx.y} * part_columns + threadIdx.x % 32 * lane_columns;
  unsigned todo = __ballot_sync(all_lanes, mine.there);
#pragma unroll 1
  while (todo != 0) {
    int from[batch];  // lanes; -1: there are no more
    eight<B> stored[batch];
    float error[batch][8];
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      from[i] = __ffs(static_cast<int>(todo)) - 1;
      todo &= todo - 1;
      const std::int64_t row = __shfl_sync(all_lanes, mine.row, from[i] & 31);
      const std::int32_t t = __shfl_sync(all_lanes, mine.t, from[i] & 31);
      if (from[i] < 0) continue;  // the same for the whole warp
      load_stored<Aligned>(bank + row * width, at, width, stored[i]);
      load_floats<Aligned>(a.errors + a.c.token(of.p, t) * width, at, width, error[i]);
    }
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      if (from[i] < 0) continue;
      float sum[8];
      widen_eight(stored[i], sum);
      if (a.saved_stride != 0) {
        save_eight<Aligned, Quantised>(
            a.format, a.saved_row(of.chunk, __shfl_sync(all_lanes, mine.where, from[i])), at, width,
            stored[i], sum);
      }
      const float keep = __shfl_sync(all_lanes, mine.keep, from[i]);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] = math::mul(keep, sum[j]);
      add_write(__shfl_sync(all_lanes, mine.tail, from[i]),
                __shfl_sync(all_lanes, mine.strength, from[i]), error[i], sum);
      add_later_writes<Aligned>(a, of, __shfl_sync(all_lanes, mine.next, from[i]),
                                __shfl_sync(all_lanes, mine.end, from[i]), at, sum);
      narrow_eight(sum, stored[i]);
      const std::int64_t row = __shfl_sync(all_lanes, mine.row, from[i]);
      store_stored<Aligned>(bank + row * width, at, width, stored[i]);
    }
  }
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
  launch_triangle<triangle<false, true>::room>(grid, on.stream(), c, of_errors, of_readings,
                                               errors.data(), readings.data());
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
  const auto blocks = static_cast<unsigned>(c.streams) * blocks_of_runs(most);
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
