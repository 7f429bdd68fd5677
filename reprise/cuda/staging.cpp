#include "reprise/cuda/staging.hpp"

#include <algorithm>
#include <cstring>

#include "reprise/cuda/thread_state.hpp"

namespace reprise::cuda {

namespace {

// A stretch of a slot that the stream fills while the host empties an earlier one.
struct stretch {
  std::byte* to = nullptr;
  std::size_t slot = 0;
  std::size_t bytes = 0;
};

}  // namespace

cudaError_t staging_ring::upload(std::byte* to, const std::byte* from, std::size_t bytes,
                                 cudaStream_t stream) {
  const std::lock_guard held{guard_};
  const relaxed_mode relaxed;  // another stream's capture may be open on this thread
  cudaError_t status = ensure_memory();
  while (status == cudaSuccess && bytes != 0) {
    if (used_ == slot_bytes) status = enter_next(stream);
    if (status != cudaSuccess) break;
    const std::size_t piece = std::min(bytes, slot_bytes - used_);
    std::byte* const staged = slot(current_) + used_;
    std::memcpy(staged, from, piece);
    status = cudaMemcpyAsync(to, staged, piece, cudaMemcpyDefault, stream);
    used_ += piece;
    to += piece;
    from += piece;
    bytes -= piece;
  }
  return status;
}

cudaError_t staging_ring::download(std::byte* to, const std::byte* from, std::size_t bytes,
                                   cudaStream_t stream) {
  const std::lock_guard held{guard_};
  const relaxed_mode relaxed;
  cudaError_t status = ensure_memory();
  while (status == cudaSuccess && bytes != 0) {
    std::array<stretch, slot_count> issued;
    std::size_t count = 0;
    while (status == cudaSuccess && bytes != 0 && count != slot_count) {
      status = enter_next(stream);
      if (status != cudaSuccess) break;
      const std::size_t piece = std::min(bytes, slot_bytes);
      used_ = slot_bytes;  // a slot that the host still has to read is not appended to
      status = cudaMemcpyAsync(slot(current_), from, piece, cudaMemcpyDefault, stream);
      if (status == cudaSuccess) status = cudaEventRecord(left_[current_], stream);
      issued[count++] = {to, current_, piece};
      to += piece;
      from += piece;
      bytes -= piece;
    }
    for (std::size_t i = 0; status == cudaSuccess && i != count; ++i) {
      status = cudaEventSynchronize(left_[issued[i].slot]);
      if (status == cudaSuccess) std::memcpy(issued[i].to, slot(issued[i].slot), issued[i].bytes);
    }
  }
  return status;
}

cudaError_t staging_ring::ensure_memory() {
  if (memory_ != nullptr) return cudaSuccess;
  for (cudaEvent_t& event : left_) {
    if (event != nullptr) continue;  // made by an attempt that then found no memory
    const cudaError_t status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (status != cudaSuccess) return status;
  }
  void* block = nullptr;
  const cudaError_t status = cudaMallocHost(&block, total_bytes);
  if (status == cudaSuccess) memory_ = static_cast<std::byte*>(block);
  return status;
}

cudaError_t staging_ring::enter_next(cudaStream_t stream) {
  cudaError_t status = cudaEventRecord(left_[current_], stream);
  if (status != cudaSuccess) return status;
  current_ = (current_ + 1) % slot_count;
  used_ = 0;
  return cudaEventSynchronize(left_[current_]);  // at once for an event that was never recorded
}

void staging_ring::free() noexcept {
  for (cudaEvent_t& event : left_) {
    if (event != nullptr) cudaEventDestroy(event);
    event = nullptr;
  }
  if (memory_ != nullptr) cudaFreeHost(memory_);
  memory_ = nullptr;
}

}  // namespace reprise::cuda
