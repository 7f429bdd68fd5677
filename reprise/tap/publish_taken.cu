// publish_taken on CUDA: a thread per producer, in one block.
//
// Floor: one trip to memory for the words and the slots, and the release, which waits for the bus;
// a microsecond or two at the end of the branch, where the model waits for nothing.
#include <algorithm>
#include <cuda/atomic>

#include "reprise/cuda/call.cuh"
#include "reprise/tap/publication_protocol.hpp"
#include "reprise/tap/publish_taken.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned publish_threads = 512;

// The policy of publication_protocol.hpp on a card (PTX memory model, causality order).
struct card_publisher {
  std::uint64_t word;
  std::uint64_t* to;
  std::uint64_t* from;

  __device__ std::uint64_t taken() const { return word; }
  static_assert(published_with.publish == std::memory_order_release &&
                published_with.publishes_to_system);
  __device__ void publish(std::uint64_t said) const {
    const cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system> slot{*to};
    slot.store(said, cuda::memory_order_release);
  }
  __device__ void take_back() const { *from = 0; }
};

__global__ void __launch_bounds__(publish_threads)
    publish_taken_block(read<std::uint64_t> plan, inout<std::uint64_t> taken,
                        write<std::uint64_t> publications) {
  for (std::size_t i = threadIdx.x; i < taken.size(); i += blockDim.x) {
    // Both are asked for at once; the slot of a producer that took nothing is not used.
    const std::uint64_t word = taken.data()[i];
    const std::uint64_t slot = plan.data()[i * descriptor_words + descriptor::slot];
    card_publisher on{word, publications.data() + slot, taken.data() + i};
    publish_one(on);
  }
}

}  // namespace

void publish_taken_cuda(cuda_call& call, read<std::uint64_t> plan, inout<std::uint64_t> taken,
                        write<std::uint64_t> publications) {
  const auto wanted = static_cast<unsigned>(std::min<std::size_t>(taken.size(), publish_threads));
  const unsigned threads = (wanted + 31) / 32 * 32;
  if (threads == 0) return;
  publish_taken_block<<<1, threads, 0, call.stream()>>>(plan, taken, publications);
}

}  // namespace reprise::REPRISE_BODIES
