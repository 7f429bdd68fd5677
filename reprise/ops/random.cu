// random_normal on CUDA: a thread draws eight elements, four Philox blocks, and stores them at
// once.
//
// Floor: out written once; the 60 integer operations an element bound it, some 0.3 T elements a
// second on an H200, so 8 billion weights take tens of milliseconds.
#include <algorithm>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/philox.hpp"
#include "reprise/ops/random.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 1 << 16;

template <bool Aligned, class T>
__global__ void __launch_bounds__(threads)
    random_grid(write<T> out, std::uint64_t seed, std::uint64_t stream, float factor) {
  const auto end = static_cast<std::int64_t>(out.size());
  const std::int64_t step = std::int64_t{gridDim.x} * threads * 8;
  for (std::int64_t at = (std::int64_t{blockIdx.x} * threads + threadIdx.x) * 8; at < end;
       at += step) {
    float values[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const philox_words words = philox(seed, static_cast<std::uint64_t>(at / 2 + i), stream);
      values[2 * i] = math::mul(centred_sum(words.at[0], words.at[1]), factor);
      values[2 * i + 1] = math::mul(centred_sum(words.at[2], words.at[3]), factor);
    }
    // The last eight of a span may reach past its end.
    if (Aligned && at + 8 <= end) {
      store_eight<true>(out.data(), at, end, values);
    } else {
      store_eight<false>(out.data(), at, end, values);
    }
  }
}

}  // namespace

template <class T>
void random_normal_cuda(cuda_call& call, write<T> out, std::uint64_t seed, std::uint64_t stream,
                        float scale) {
  const auto size = static_cast<std::int64_t>(out.size());
  if (size == 0) return;
  const std::int64_t blocks = std::min(most_blocks, (size + threads * 8 - 1) / (threads * 8));
  const auto grid = in_eights(0, {out.data()}) ? &random_grid<true, T> : &random_grid<false, T>;
  grid<<<static_cast<unsigned>(blocks), threads, 0, call.stream()>>>(out, seed, stream,
                                                                     scale / centred_sum_deviation);
}

template void random_normal_cuda(cuda_call&, write<float>, std::uint64_t, std::uint64_t, float);
template void random_normal_cuda(cuda_call&, write<bf16>, std::uint64_t, std::uint64_t, float);

}  // namespace reprise::REPRISE_BODIES::ops
