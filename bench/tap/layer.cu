// tap_layer on CUDA: 16 bytes of weights a thread and turn.
#include "bench/tap/layer.hpp"
#include "reprise/cuda/call.cuh"

namespace reprise::bench::REPRISE_BODIES {

namespace {

constexpr unsigned layer_threads = 256;
constexpr unsigned layer_blocks = 132 * 8;

__global__ void __launch_bounds__(layer_threads)
    tap_layer_grid(read<std::int32_t> weights, read<float> in, write<float> out, float by) {
  const std::size_t first = std::size_t{blockIdx.x} * layer_threads + threadIdx.x;
  const std::size_t stride = std::size_t{gridDim.x} * layer_threads;
  const auto* const words = reinterpret_cast<const int4*>(weights.data());
  float sum = 0;
  for (std::size_t i = first; i < weights.size() / 4; i += stride) {
    const int4 four = words[i];
    sum += __int_as_float(four.x ^ four.y ^ four.z ^ four.w);
  }
  for (std::size_t i = first; i < out.size(); i += stride) {
    out[i] = in[i] + by + sum * 1e-30F;
  }
}

}  // namespace

void tap_layer_cuda(cuda_call& call, read<std::int32_t> weights, read<float> in, write<float> out,
                    float by) {
  tap_layer_grid<<<layer_blocks, layer_threads, 0, call.stream()>>>(weights, in, out, by);
}

}  // namespace reprise::bench::REPRISE_BODIES
