// bring and put_gradient on CUDA: 16 bytes a thread where both sides are aligned, else one.
//
// Floor: the bytes, once read and once written; small ones are one node of 0.8 us.
#include <algorithm>

#include "reprise/cuda/call.cuh"
#include "reprise/grad/kernels.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned threads = 256;

unsigned blocks_for(std::size_t items) {
  constexpr std::size_t most = 2048;  // enough to fill any card
  return static_cast<unsigned>(std::clamp<std::size_t>((items + threads - 1) / threads, 1, most));
}

// Where `from` lies is known on the device alone, so that is where its alignment is looked at.
__global__ void __launch_bounds__(threads)
    bring_grid(read<std::uint8_t> behind, write<std::uint8_t> to) {
  const std::uint8_t* const from = behind.followed().data();
  std::uint8_t* const out = to.data();
  const std::size_t bytes = to.size();
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  const std::size_t first = blockIdx.x * std::size_t{threads} + threadIdx.x;
  std::size_t done = 0;
  if ((reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(out)) % 16 == 0) {
    for (std::size_t i = first; i < bytes / 16; i += stride) {
      reinterpret_cast<uint4*>(out)[i] = reinterpret_cast<const uint4*>(from)[i];
    }
    done = bytes / 16 * 16;
  }
  for (std::size_t i = done + first; i < bytes; i += stride) out[i] = from[i];
}

__global__ void __launch_bounds__(threads)
    put_gradient_grid(read<float> sum, inout<float> grad, bool adds) {
  const std::size_t stride = std::size_t{gridDim.x} * threads;
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < grad.size();
       i += stride) {
    grad.data()[i] = adds ? __fadd_rn(grad.data()[i], sum.data()[i]) : sum.data()[i];
  }
}

}  // namespace

void bring_cuda(cuda_call& call, read<std::uint8_t> from, write<std::uint8_t> to) {
  if (to.size() == 0) return;
  bring_grid<<<blocks_for(to.size() / 16), threads, 0, call.stream()>>>(from, to);
}

void put_gradient_cuda(cuda_call& call, read<float> sum, inout<float> grad, gradient_rule rule) {
  if (grad.size() == 0 || rule == gradient_rule::leave) return;
  put_gradient_grid<<<blocks_for(grad.size()), threads, 0, call.stream()>>>(
      sum, grad, rule == gradient_rule::add);
}

}  // namespace reprise::REPRISE_BODIES
