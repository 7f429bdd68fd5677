// swiglu on CUDA: one thread takes eight elements.
//
// Floor: three elements of traffic each. The arithmetic, some 45 instructions, takes about as long
// as that traffic does in bf16 on an H200, and hides behind it.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/swiglu.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int threads = 256;

template <bool Aligned, class A>
__global__ void __launch_bounds__(threads) swiglu_grid(read<A> gate, read<A> up, write<A> out) {
  const auto end = static_cast<std::int64_t>(gate.size());
  const std::int64_t at = (std::int64_t{blockIdx.x} * threads + threadIdx.x) * 8;
  if (at >= end) return;
  float g[8];
  float u[8];
  load_eight<Aligned>(gate.data(), at, end, g);
  load_eight<Aligned>(up.data(), at, end, u);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float below = math::add(1.0f, math::exp(math::sub(0.0f, g[i])));
    u[i] = math::mul(math::div(g[i], below), u[i]);
  }
  store_eight<Aligned>(out.data(), at, end, u);
}

}  // namespace

template <class A>
void swiglu_cuda(cuda_call& call, read<A> gate, read<A> up, write<A> out) {
  check_swiglu(gate.size(), up.size(), out.size());
  const auto end = static_cast<std::int64_t>(gate.size());
  if (end == 0) return;
  const auto grid = in_eights(end, {gate.data(), up.data(), out.data()}) ? &swiglu_grid<true, A>
                                                                         : &swiglu_grid<false, A>;
  const auto blocks = static_cast<unsigned>((end + threads * 8 - 1) / (threads * 8));
  grid<<<blocks, threads, 0, call.stream()>>>(gate, up, out);
}

template void swiglu_cuda(cuda_call&, read<float>, read<float>, write<float>);
template void swiglu_cuda(cuda_call&, read<bf16>, read<bf16>, write<bf16>);

}  // namespace reprise::REPRISE_BODIES::ops
