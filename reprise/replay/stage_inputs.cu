// stage_inputs on CUDA: a thread per 16 bytes.
//
// Floor: one round trip over the bus, a microsecond or two, and the bytes at its rate. So the mask
// and the data are asked for at once, and nothing waits for a fence of the whole system: the host
// rewrites a slot only when it has seen the count, which is written after every byte was read.
// One thread of a block asks for a mask that is this block's own: warps that ask the host for one
// line are answered one by one, a microsecond each (H200: 2.1 us for one block whose first thread
// asks, 9.2 with eight warps asking, 1.07 ms with 128 such blocks).
#include "reprise/cuda/call.cuh"
#include "reprise/replay/stage_inputs.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned threads = 256;

// Which segment the bytes from `at` on belong to; `segments` in the gap behind the last.
__device__ std::uint64_t segment_of(const std::uint64_t* pairs, std::uint64_t segments,
                                    std::uint64_t at) {
  std::uint64_t i = 0;
  while (i != segments && at >= pairs[2 * i] + pairs[2 * i + 1]) ++i;
  return i;
}

__global__ void __launch_bounds__(threads)
    stage_inputs_grid(read<std::uint8_t> ring, write<std::uint8_t> block,
                      inout<std::uint64_t> words, write<std::uint64_t> consumed,
                      std::uint64_t slot_bytes, std::uint64_t slots, std::uint64_t segments) {
  const std::uint64_t turn = *static_cast<volatile std::uint64_t*>(words.data());
  const std::uint8_t* const slot = ring.data() + turn % slots * slot_bytes;
  const std::uint8_t* const from = slot + stage_header_bytes(block.size());
  const std::uint64_t* const pairs = words.data() + 2;
  const std::uint64_t end = pairs[2 * segments - 2] + pairs[2 * segments - 1];
  const std::uint64_t stride = std::uint64_t{gridDim.x} * threads * 16;
  std::uint64_t at = (std::uint64_t{blockIdx.x} * threads + threadIdx.x) * 16;
  // Never through a cache that outlives the launch: the host rewrites the ring.
  __shared__ std::uint64_t told;
  uint4 first{};
  if (at < end) first = __ldcv(reinterpret_cast<const uint4*>(from + at));
  if (threadIdx.x == 0) {
    told =
        __ldcv(reinterpret_cast<const unsigned long long*>(slot + blockIdx.x * stage_mask_apart));
  }
  __syncthreads();
  const std::uint64_t there = told;
  for (bool is_first = true; at < end; at += stride, is_first = false) {
    const uint4 bytes = is_first ? first : __ldcv(reinterpret_cast<const uint4*>(from + at));
    const std::uint64_t i = segment_of(pairs, segments, at);
    if (i == segments || at < pairs[2 * i] || (there >> i & 1) == 0) continue;
    *reinterpret_cast<uint4*>(block.data() + at) = bytes;
  }

  // The last block tells the host, when every block has read the count and its bytes.
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (gridDim.x != 1) {
    __threadfence();
    auto* const done = reinterpret_cast<unsigned long long*>(words.data() + 1);
    if (atomicAdd(done, 1ull) != gridDim.x - 1) return;
    *done = 0;
  }
  words.data()[0] = turn + 1;
  *static_cast<volatile std::uint64_t*>(consumed.data()) = turn + 1;
}

}  // namespace

void stage_inputs_cuda(cuda_call& call, read<std::uint8_t> ring, write<std::uint8_t> block,
                       inout<std::uint64_t> words, write<std::uint64_t> consumed,
                       std::uint64_t slot_bytes, std::uint64_t slots, std::uint64_t segments) {
  const auto blocks = static_cast<unsigned>(stage_masks(block.size()));
  stage_inputs_grid<<<blocks, threads, 0, call.stream()>>>(ring, block, words, consumed, slot_bytes,
                                                           slots, segments);
}

}  // namespace reprise::REPRISE_BODIES
