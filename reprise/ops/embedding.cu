// embedding on CUDA: one thread moves eight elements.
//
// Floor: m * width elements of the table read and as many of out written, once each.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/embedding.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int threads = 256;

template <bool Aligned, class A, class W>
__global__ void __launch_bounds__(threads)
    embedding_grid(read<std::int32_t> tokens, read<W> table, write<A> out, std::int64_t width,
                   std::int64_t vocabulary) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t at = (std::int64_t{blockIdx.y} * threads + threadIdx.x) * 8;
  if (at >= width) return;
  const std::int64_t token = tokens.data()[row];
  float values[8] = {};
  if (token >= 0 && token < vocabulary) {
    load_eight<Aligned>(table.data() + token * width, at, width, values);
  }
  store_eight<Aligned>(out.data() + row * width, at, width, values);
}

}  // namespace

template <class A, class W>
void embedding_cuda(cuda_call& call, read<std::int32_t> tokens, read<W> table, write<A> out,
                    std::int64_t width) {
  const std::int64_t vocabulary =
      embedding_vocabulary(tokens.size(), table.size(), out.size(), width);
  if (tokens.size() == 0) return;
  const dim3 blocks{static_cast<unsigned>(tokens.size()),
                    static_cast<unsigned>((width + threads * 8 - 1) / (threads * 8))};
  const auto grid = in_eights(width, {table.data(), out.data()}) ? &embedding_grid<true, A, W>
                                                                 : &embedding_grid<false, A, W>;
  grid<<<blocks, threads, 0, call.stream()>>>(tokens, table, out, width, vocabulary);
}

template void embedding_cuda(cuda_call&, read<std::int32_t>, read<float>, write<float>,
                             std::int64_t);
template void embedding_cuda(cuda_call&, read<std::int32_t>, read<bf16>, write<float>,
                             std::int64_t);
template void embedding_cuda(cuda_call&, read<std::int32_t>, read<bf16>, write<bf16>, std::int64_t);

}  // namespace reprise::REPRISE_BODIES::ops
