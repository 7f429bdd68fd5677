// rms_norm on CUDA: one block per row, eight neighbouring slots per thread.
//
// Floor: x read and y written once, the gain from L2. Rows of up to 4096 are held in registers;
// what is longer is read twice, the second time from L1. At batch 1 the latency is what counts, so
// the gain is asked for before the sum is folded. A block has as many threads as a row's slots
// need, which depends on `width` alone; slots that no thread holds are zeros in the order of the
// header, and change no sum.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rms_norm.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int most_threads = rms_norm_slots / 8;

__device__ float pair(float a, float b) {
  return math::add(a, b);
}

// The sum of eight by pairs of neighbours.
__device__ float fold_eight(const float* v) {
  return pair(pair(pair(v[0], v[1]), pair(v[2], v[3])), pair(pair(v[4], v[5]), pair(v[6], v[7])));
}

// Adds the slots of a block, neighbours first: within a thread, then lanes, then warps.
__device__ float fold_block(const float (&slots)[8]) {
  constexpr int most_warps = most_threads / 32;
  __shared__ float of_warp[most_warps];
  float sum = fold_eight(slots);
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {  // both of a pair compute the same sum
    sum = pair(sum, __shfl_xor_sync(0xffffffffu, sum, step));
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  float warps[most_warps];
#pragma unroll
  for (int w = 0; w < most_warps; ++w) warps[w] = w * 32 < blockDim.x ? of_warp[w] : 0.0f;
  static_assert(most_warps == 16);
  return pair(fold_eight(warps), fold_eight(warps + 8));
}

template <bool Aligned, class A, class W>
__global__ void __launch_bounds__(most_threads)
    rms_norm_grid(read<A> x, read<W> gain, write<A> y, std::int64_t width, float eps) {
  const A* from = x.data() + blockIdx.x * width;
  A* to = y.data() + blockIdx.x * width;
  // Only blocks of the most threads take more than one step: it is then all the slots.
  const std::int64_t step = std::int64_t{blockDim.x} * 8;
  const std::int64_t begin = threadIdx.x * 8;

  float values[8] = {};
  float gains[8] = {};
  if (begin < width) {
    load_eight<Aligned>(from, begin, width, values);
    load_eight<Aligned>(gain.data(), begin, width, gains);
  }
  float slots[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) slots[i] = math::mul(values[i], values[i]);
  for (std::int64_t at = begin + step; at < width; at += step) {
    float more[8];
    load_eight<Aligned>(from, at, width, more);
#pragma unroll
    for (int i = 0; i < 8; ++i) slots[i] = math::add(slots[i], math::mul(more[i], more[i]));
  }
  const float mean = math::div(fold_block(slots), static_cast<float>(width));
  const float inverse = math::div(1.0f, math::sqrt(math::add(mean, eps)));

  for (std::int64_t at = begin; at < width; at += step) {
    if (at != begin) {
      load_eight<Aligned>(from, at, width, values);
      load_eight<Aligned>(gain.data(), at, width, gains);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = math::mul(math::mul(values[i], inverse), gains[i]);
    store_eight<Aligned>(to, at, width, values);
  }
}

int threads_for(std::int64_t width) {
  int threads = 32;
  while (threads < most_threads && threads * 8 < width) threads *= 2;
  return threads;
}

}  // namespace

template <class A, class W>
void rms_norm_cuda(cuda_call& call, read<A> x, read<W> gain, write<A> y, std::int64_t width,
                   float eps) {
  const std::int64_t rows = rms_norm_rows(x.size(), gain.size(), y.size(), width);
  if (rows == 0) return;
  const auto grid = in_eights(width, {x.data(), gain.data(), y.data()})
                        ? &rms_norm_grid<true, A, W>
                        : &rms_norm_grid<false, A, W>;
  grid<<<static_cast<unsigned>(rows), threads_for(width), 0, call.stream()>>>(x, gain, y, width,
                                                                              eps);
}

template void rms_norm_cuda(cuda_call&, read<float>, read<float>, write<float>, std::int64_t,
                            float);
template void rms_norm_cuda(cuda_call&, read<float>, read<bf16>, write<float>, std::int64_t, float);
template void rms_norm_cuda(cuda_call&, read<bf16>, read<bf16>, write<bf16>, std::int64_t, float);

}  // namespace reprise::REPRISE_BODIES::ops
