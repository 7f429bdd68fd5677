// random_uniform on CUDA: a thread per draw, four elements each.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/random_uniform.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr unsigned threads = 256;

__global__ void random_uniform_grid(read<std::uint64_t> base, write<float> out,
                                    std::uint64_t offset) {
  const std::size_t draw = blockIdx.x * std::size_t{threads} + threadIdx.x;
  if (4 * draw >= out.size()) return;
  const philox_words words = philox(base.data()[0], base.data()[1] + offset + draw, 0);
  for (std::size_t i = 0; i != 4 && 4 * draw + i < out.size(); ++i) {
    out.data()[4 * draw + i] = uniform_of(words.at[i]);
  }
}

}  // namespace

void random_uniform_cuda(cuda_call& call, read<std::uint64_t> base, write<float> out,
                         std::uint64_t offset) {
  check_random_uniform(base.size());
  if (out.size() == 0) return;
  const auto blocks = static_cast<unsigned>((uniform_draws(out.size()) + threads - 1) / threads);
  random_uniform_grid<<<blocks, threads, 0, call.stream()>>>(base, out, offset);
}

}  // namespace reprise::REPRISE_BODIES::ops
