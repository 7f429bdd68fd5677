// sdm_step on CUDA: a thread owns one column of a stream's rows and does all of the step for it, so
// that nothing waits for another thread and a read sees what was written.
//
// What counts is how many loads are under way: a token's 64 rows are all asked for before the first
// is used, and kept in registers until they are written. So a step waits three times for memory:
// for the indices, for the rows that it writes and for those that it reads, whatever the width is.
// A block is one warp: 768 columns are 24 of them.
#include "reprise/cuda/call.cuh"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/step.hpp"
#include "reprise/sdm/step_sizes.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

constexpr int columns = 32;    // of a block
constexpr int row_batch = 64;  // rows that are under way at a time

// Rows of a batch and what they weigh, once for the block. Row -1 is left out: it is taken as zeros
// of no weight, which change no sum. Aligned, so that four come with one access.
struct writes {
  alignas(16) std::int32_t row[row_batch];
  alignas(16) float recalled[row_batch];  // k * a
  alignas(16) float kept[row_batch];      // a
  alignas(16) float taken[row_batch];     // k
};
struct reads {
  alignas(16) std::int32_t row[row_batch];
  alignas(16) float weight[row_batch];
};

template <class B>
struct step_arrays {
  B* bank;
  const std::int32_t* k_idx;
  const float* k_val;
  const float* v;
  const float* beta;
  const float* g;
  const std::int32_t* q_idx;
  const float* q_val;
  float* readings;
  sdm_sizes sizes;
};

__device__ inline std::int32_t row_of(const sdm_sizes& sizes, std::int64_t p, std::int32_t index) {
  const std::int64_t slot = index - p * sizes.slots;
  return slot < 0 || slot >= sizes.slots ? -1 : index;
}

template <class B>
__device__ void bring(const step_arrays<B>& of, std::int64_t p, std::int64_t first, writes& to) {
  for (int i = threadIdx.x; i < row_batch; i += columns) {
    const std::int64_t w = first + i;
    std::int32_t row = -1;
    if (w < of.sizes.writes) row = row_of(of.sizes, p, of.k_idx[p * of.sizes.writes + w]);
    float k = 0.0f;
    float a = 0.0f;
    if (row >= 0) {
      k = of.k_val[p * of.sizes.writes + w];
      a = math::exp(of.g[of.sizes.decays == 1 ? p : p * of.sizes.decays + w]);
    }
    to.row[i] = row;
    to.recalled[i] = math::mul(k, a);
    to.kept[i] = a;
    to.taken[i] = k;
  }
}

template <class B>
__device__ void bring(const step_arrays<B>& of, std::int64_t p, std::int64_t first, reads& to) {
  for (int i = threadIdx.x; i < row_batch; i += columns) {
    const std::int64_t n = first + i;
    std::int32_t row = -1;
    if (n < of.sizes.reads) row = row_of(of.sizes, p, of.q_idx[p * of.sizes.reads + n]);
    to.row[i] = row;
    to.weight[i] = row >= 0 ? of.q_val[p * of.sizes.reads + n] : 0.0f;
  }
}

// What the thread's column has in each row of a batch; `column` begins at the bank's first row.
template <class B>
__device__ inline void load_rows(const B* column, std::int64_t width, const std::int32_t* rows,
                                 float (&values)[row_batch]) {
#pragma unroll
  for (int i = 0; i < row_batch; ++i) {
    values[i] = rows[i] >= 0 ? widen(column[rows[i] * width]) : 0.0f;
  }
}

template <class B>
__global__ void __launch_bounds__(columns) step_grid(step_arrays<B> of, std::int64_t across) {
  __shared__ writes written;
  __shared__ reads looked_at;
  const sdm_sizes& sizes = of.sizes;
  const std::int64_t p = blockIdx.x / across;
  const std::int64_t column = blockIdx.x % across * columns + threadIdx.x;
  const bool there = column < sizes.width;
  B* const bank = of.bank + column;
  float values[row_batch];

  bring(of, p, 0, written);
  bring(of, p, 0, looked_at);
  const float strength = of.beta[p];
  const float wanted = there ? of.v[p * sizes.width + column] : 0.0f;
  __syncthreads();

  float recalled = 0.0f;
  for (std::int64_t first = 0; first < sizes.writes; first += row_batch) {
    if (first > 0) {
      __syncthreads();
      bring(of, p, first, written);
      __syncthreads();
    }
    if (!there) continue;
    load_rows(bank, sizes.width, written.row, values);
#pragma unroll
    for (int i = 0; i < row_batch; ++i) {
      recalled = math::add(recalled, math::mul(written.recalled[i], values[i]));
    }
  }

  const float delta = math::mul(strength, math::sub(wanted, recalled));
  const bool at_hand = sizes.writes <= row_batch;  // then values are still those of all rows
  for (std::int64_t first = 0; first < sizes.writes; first += row_batch) {
    if (!at_hand) {
      __syncthreads();
      bring(of, p, first, written);
      __syncthreads();
    }
    if (!there) continue;
    if (!at_hand) load_rows(bank, sizes.width, written.row, values);
#pragma unroll
    for (int i = 0; i < row_batch; ++i) {
      if (written.row[i] < 0) continue;
      bank[written.row[i] * sizes.width] = narrow<B>(
          math::add(math::mul(written.kept[i], values[i]), math::mul(written.taken[i], delta)));
    }
  }

  float reading = 0.0f;
  for (std::int64_t first = 0; first < sizes.reads; first += row_batch) {
    if (first > 0) {
      __syncthreads();
      bring(of, p, first, looked_at);
      __syncthreads();
    }
    if (!there) continue;
    load_rows(bank, sizes.width, looked_at.row, values);
#pragma unroll
    for (int i = 0; i < row_batch; ++i) {
      reading = math::add(reading, math::mul(looked_at.weight[i], values[i]));
    }
  }
  if (there) of.readings[p * sizes.width + column] = reading;
}

}  // namespace

template <class B, class X>
void step_cuda(cuda_call& call, inout<B> bank, read<std::int32_t> k_idx, read<X> k_val, read<X> v,
               read<X> beta, read<X> g, read<std::int32_t> q_idx, read<X> q_val, write<X> readings,
               sdm_sizes sizes) {
  need_step(sizes, bank, k_idx, k_val, v, beta, g, q_idx, q_val, readings);
  const step_arrays<B> arrays{bank.data(), k_idx.data(), k_val.data(), v.data(),        beta.data(),
                              g.data(),    q_idx.data(), q_val.data(), readings.data(), sizes};
  const std::int64_t across = (sizes.width + columns - 1) / columns;
  step_grid<B><<<static_cast<unsigned>(sizes.streams * across), columns, 0, call.stream()>>>(
      arrays, across);
}

template void step_cuda<float>(cuda_call&, inout<float>, read<std::int32_t>, read<float>,
                               read<float>, read<float>, read<float>, read<std::int32_t>,
                               read<float>, write<float>, sdm_sizes);
template void step_cuda<bf16>(cuda_call&, inout<bf16>, read<std::int32_t>, read<float>, read<float>,
                              read<float>, read<float>, read<std::int32_t>, read<float>,
                              write<float>, sdm_sizes);

}  // namespace reprise::REPRISE_BODIES::sdm
