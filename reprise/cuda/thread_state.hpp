// What CUDA keeps per thread and every call depends on: the current device, and how strictly the
// thread is held to the rules of capture. For this room's .cpp files.
#pragma once

#include <cuda_runtime_api.h>

namespace reprise::cuda {

// The device that this thread made current last, as far as this room knows; -1: none yet.
inline constinit thread_local int remembered_device = -1;

// Work that others enqueue may have made another device current.
inline void forget_current_device() noexcept {
  remembered_device = -1;
}

// Makes the device current and binds its context to the thread; driver calls need the binding, and
// cudaSetDevice does it since CUDA 12. Asks CUDA what is current, because a user's code may have
// changed it since, and an allocation would then silently go to another card.
inline cudaError_t make_current(int ordinal) noexcept {
  int current = -1;
  cudaError_t status = cudaGetDevice(&current);
  if (status == cudaSuccess && (current != ordinal || remembered_device != ordinal)) {
    status = cudaSetDevice(ordinal);
  }
  remembered_device = status == cudaSuccess ? ordinal : -1;
  return status;
}

// The cheap form, for calls that CUDA directs by their stream and not by the current device: all
// that matters is that the thread's first call does not wake another card.
inline cudaError_t make_current_once(int ordinal) noexcept {
  return remembered_device == ordinal ? cudaSuccess : make_current(ordinal);
}

// After code that is not ours ran on the thread and may have made another device current. Setting
// the device back is left to the next call that needs it.
inline void look_at_current_device() noexcept {
  int current = -1;
  if (cudaGetDevice(&current) != cudaSuccess || current != remembered_device) {
    remembered_device = -1;
  }
}

// While it lives, this thread may make calls that CUDA forbids a thread with an open capture
// (allocating, querying an event), and that would break the capture. Only around single calls that
// have nothing to do with the captured streams, and after the device was made current: on a fresh
// thread the exchange itself binds a context.
class relaxed_mode {
 public:
  relaxed_mode() noexcept { changed_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess; }
  ~relaxed_mode() {
    if (changed_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  relaxed_mode(const relaxed_mode&) = delete;
  relaxed_mode& operator=(const relaxed_mode&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool changed_ = false;
};

}  // namespace reprise::cuda
