#include "reprise/cuda/check.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/cuda/thread_state.hpp"

namespace reprise::cuda {

namespace {

// Zero where CUDA does not say.
std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  const relaxed_mode relaxed;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return free;
}

}  // namespace

std::string text_of(cudaError_t status) {
  return fmt::format("{} ({}): {}", cudaGetErrorName(status), static_cast<int>(status),
                     cudaGetErrorString(status));
}

bool loses_the_device(cudaError_t status) {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice: return true;
    default: return false;
  }
}

void health::fail(cudaError_t status, const failing_call& where) {
  cudaGetLastError();
  if (loses_the_device(status)) {
    note_loss(status);
    throw_lost(where);
  }
  const call_place place{where.call, device_, where.from};
  if (status == cudaErrorMemoryAllocation) {
    throw out_of_memory{place, where.asked, where.of_the_device ? free_bytes() : 0};
  }
  if (where.captured) throw capture_error{place, text_of(status)};
  throw device_error{place, text_of(status)};
}

void health::report(cudaError_t status, std::string_view call) noexcept {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  const bool fatal = loses_the_device(status);
  if (fatal ? !note_loss(status) : lost()) return;
  report_error(fmt::format("{} on {} failed: {}{}", call, device_, text_of(status),
                           fatal ? "; the device is lost for this process, restart it" : ""));
}

void health::throw_lost(const failing_call& where) const {
  const std::lock_guard lock{guard_};
  throw device_error{{where.call, device_, where.from},
                     fmt::format("the device is lost for this process since {}; restart the "
                                 "process, and look for the fault with compute-sanitizer",
                                 lost_why_)};
}

bool health::note_loss(cudaError_t status) {
  const std::lock_guard lock{guard_};
  if (lost_.load(std::memory_order_relaxed)) return false;
  lost_why_ = text_of(status);
  lost_.store(true, std::memory_order_release);
  return true;
}

}  // namespace reprise::cuda
