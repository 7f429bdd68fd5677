// move_span on CUDA: 16 bytes a thread and turn, eight of them in flight.
#include "reprise/cuda/call.cuh"
#include "reprise/tap/move_span.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned move_threads = 512;
constexpr unsigned most_move_blocks = 4;

__global__ void __launch_bounds__(move_threads)
    move_span_grid(read<std::uint8_t> from, write<std::uint8_t> to) {
  const auto* const source = reinterpret_cast<const uint4*>(from.data());
  auto* const target = reinterpret_cast<uint4*>(to.data());
  const std::size_t units = from.size() / sizeof(uint4);
  const std::size_t stride = std::size_t{gridDim.x} * move_threads;
  std::size_t i = std::size_t{blockIdx.x} * move_threads + threadIdx.x;
#pragma unroll 8
  for (; i < units; i += stride) target[i] = source[i];
}

}  // namespace

void move_span_cuda(cuda_call& call, read<std::uint8_t> from, write<std::uint8_t> to) {
  const std::size_t units = from.size() / sizeof(uint4);
  if (units == 0) return;
  const std::size_t wanted = (units + move_threads - 1) / move_threads;
  const auto blocks = static_cast<unsigned>(wanted < most_move_blocks ? wanted : most_move_blocks);
  move_span_grid<<<blocks, move_threads, 0, call.stream()>>>(from, to);
}

}  // namespace reprise::REPRISE_BODIES
