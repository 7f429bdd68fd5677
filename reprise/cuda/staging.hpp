// The way of eager copies from and to pageable host memory: through pinned memory of our own.
//
// CUDA would take pageable pointers as well, but whether it has read the source when it returns
// depends on the machine: where the driver can reach pageable memory itself it need not stage it.
// Reprise promises that the source may be reused at once, so it stages. For this room's .cpp files.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace reprise::cuda {

// Pinned slots that one stream uses in turn. An upload appends to the current slot, and an event is
// recorded when the slot is left; it waits only when it comes round to a slot that the stream has
// not read yet, 1.5 MiB later at the earliest. So small uploads to a stream that is held back do
// not hold the host. The memory, 2 MiB, is taken at the first use. Threads that use one stream take
// turns.
class staging_ring {
 public:
  staging_ring() = default;
  staging_ring(const staging_ring&) = delete;
  staging_ring& operator=(const staging_ring&) = delete;

  static constexpr std::size_t slot_bytes = std::size_t{512} << 10;
  static constexpr std::size_t slot_count = 4;
  static constexpr std::size_t total_bytes = slot_bytes * slot_count;

  // `from` may be reused when it returns; the copy is in stream order.
  cudaError_t upload(std::byte* to, const std::byte* from, std::size_t bytes, cudaStream_t stream);

  // Waits for the stream: the bytes are there when it returns.
  cudaError_t download(std::byte* to, const std::byte* from, std::size_t bytes,
                       cudaStream_t stream);

  // The stream has finished, or its device is lost.
  void free() noexcept;

 private:
  // Under the guard, as all that follows.
  cudaError_t ensure_memory();
  std::byte* slot(std::size_t index) const { return memory_ + index * slot_bytes; }
  cudaError_t enter_next(cudaStream_t stream);

  std::mutex guard_;
  std::byte* memory_ = nullptr;
  std::array<cudaEvent_t, slot_count> left_{};  // recorded when the stream's use of a slot ends
  std::size_t current_ = 0;
  std::size_t used_ = 0;  // bytes of the current slot
};

}  // namespace reprise::cuda
