// squared_error on CUDA: a block of 1024 threads for each 4096 elements, then one block for their
// sums; its gradient, a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/slot_sum.cuh"
#include "reprise/ops/squared_error.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

__global__ void __launch_bounds__(total_slots)
    chunk_errors(read<float> x, read<float> target, float* sums) {
  const std::int64_t begin = blockIdx.x * error_chunk;
  const float* const a = x.data() + begin;
  const float* const b = target.data() + begin;
  const std::int64_t left = static_cast<std::int64_t>(x.size()) - begin;
  const float sum = block_sum(left < error_chunk ? left : error_chunk,
                              [&](std::int64_t l) { return squared_off(a[l], b[l]); });
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(total_slots)
    mean_of_chunks(const float* sums, std::int64_t chunks, write<float> loss,
                   std::size_t elements) {
  const float sum = block_sum(chunks, [&](std::int64_t chunk) { return sums[chunk]; });
  if (threadIdx.x != 0) return;
  loss.data()[0] = elements == 0 ? 0.0f : math::div(sum, static_cast<float>(elements));
}

struct error_element {
  read<float> x, target, dloss;
  write<float> dx;
  __device__ void operator()(std::size_t i) const {
    dx.data()[i] =
        math::mul(math::sub(x.data()[i], target.data()[i]), error_scale(dloss.data()[0], x.size()));
  }
};

}  // namespace

void squared_error_cuda(cuda_call& call, read<float> x, read<float> target, write<float> loss) {
  check_squared_error(x.size(), target.size(), loss.size());
  auto* const sums = reinterpret_cast<float*>(call.workspace().data());
  const std::int64_t chunks = error_chunks(x.size());
  if (chunks > 0) {
    const auto blocks = static_cast<unsigned>(chunks);
    chunk_errors<<<blocks, total_slots, 0, call.stream()>>>(x, target, sums);
  }
  mean_of_chunks<<<1, total_slots, 0, call.stream()>>>(sums, chunks, loss, x.size());
}

void squared_error_grad_cuda(cuda_call& call, read<float> x, read<float> target, read<float> dloss,
                             write<float> dx) {
  check_squared_error_grad(x.size(), target.size(), dloss.size(), dx.size());
  elementwise(call, x.size(), error_element{x, target, dloss, dx});
}

}  // namespace reprise::REPRISE_BODIES::ops
