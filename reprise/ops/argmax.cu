// argmax on CUDA: one block per row.
//
// Floor: each logit read once, mostly from L2, where the product before has just put them. One SM
// reads about 100 GB/s: some 6 us for a row of 151,936. Spreading a row over blocks would need a
// second node and scratch.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/argmax.hpp"
#include "reprise/ops/row_block.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

__global__ void __launch_bounds__(row_threads)
    argmax_grid(read<float> logits, write<std::int32_t> out, std::int64_t width) {
  const greatest seen = block_greatest(logits.data() + blockIdx.x * width, width);
  if (threadIdx.x == 0) out.data()[blockIdx.x] = token_of(seen);
}

}  // namespace

void argmax_cuda(cuda_call& call, read<float> logits, write<std::int32_t> out, std::int64_t width) {
  const std::int64_t rows = argmax_rows(logits.size(), out.size(), width);
  if (rows == 0) return;
  argmax_grid<<<static_cast<unsigned>(rows), row_threads, 0, call.stream()>>>(logits, out, width);
}

}  // namespace reprise::REPRISE_BODIES::ops
