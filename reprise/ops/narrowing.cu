// narrow_to_bf16 on CUDA: one thread takes eight elements. Floor: six bytes of traffic each.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/narrowing.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int threads = 256;

template <bool Aligned>
__global__ void __launch_bounds__(threads) narrowing_grid(read<float> x, write<bf16> out) {
  const auto end = static_cast<std::int64_t>(x.size());
  const std::int64_t at = (std::int64_t{blockIdx.x} * threads + threadIdx.x) * 8;
  if (at >= end) return;
  float values[8];
  load_eight<Aligned>(x.data(), at, end, values);
  store_eight<Aligned>(out.data(), at, end, values);
}

}  // namespace

void narrow_to_bf16_cuda(cuda_call& call, read<float> x, write<bf16> out) {
  check_narrow_to_bf16(x.size(), out.size());
  const auto end = static_cast<std::int64_t>(x.size());
  if (end == 0) return;
  const auto grid =
      in_eights(end, {x.data(), out.data()}) ? &narrowing_grid<true> : &narrowing_grid<false>;
  const auto blocks = static_cast<unsigned>((end + threads * 8 - 1) / (threads * 8));
  grid<<<blocks, threads, 0, call.stream()>>>(x, out);
}

}  // namespace reprise::REPRISE_BODIES::ops
