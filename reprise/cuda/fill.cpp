#include "reprise/cuda/fill.hpp"

#include <cstdint>

namespace reprise::cuda {

namespace {

// The form of these functions is that of CUDA 3.2 and was the same in 12.0; a later form, should
// there be one, is not what the types in fill.hpp describe.
constexpr unsigned int asked_version = 12000;

template <class Function>
cudaError_t find_one(const char* name, Function& function) noexcept {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &address, asked_version,
                                                              cudaEnableLegacyStream, &found);
  if (status != cudaSuccess) return status;
  if (found != cudaDriverEntryPointSuccess) return cudaErrorSymbolNotFound;
  function = reinterpret_cast<Function>(address);
  return cudaSuccess;
}

}  // namespace

fill_call shortened(fill_call fill) {
  if (fill.pattern_bytes == 4 && (fill.pattern >> 16) == (fill.pattern & 0xffffu)) {
    fill.pattern_bytes = 2;
  }
  if (fill.pattern_bytes == 2 && ((fill.pattern >> 8) & 0xffu) == (fill.pattern & 0xffu)) {
    fill.pattern_bytes = 1;
  }
  return fill;
}

cudaError_t fill_functions::find() noexcept {
  const cudaError_t status = find_one("cuMemsetD16Async", set16_);
  return status != cudaSuccess ? status : find_one("cuMemsetD32Async", set32_);
}

// CUresult and cudaError_t have the same numbers since CUDA 10.1.
cudaError_t fill_functions::run(const fill_call& asked, cudaStream_t stream) const noexcept {
  const fill_call fill = shortened(asked);
  const auto to = reinterpret_cast<CUdeviceptr>(fill.to);
  switch (fill.pattern_bytes) {
    case 1:
      return cudaMemsetAsync(fill.to, static_cast<int>(fill.pattern & 0xffu), fill.bytes, stream);
    case 2:
      return static_cast<cudaError_t>(
          set16_(to, static_cast<unsigned short>(fill.pattern & 0xffffu), fill.bytes / 2, stream));
    default: return static_cast<cudaError_t>(set32_(to, fill.pattern, fill.bytes / 4, stream));
  }
}

bool well_formed(const fill_call& fill) {
  const unsigned width = fill.pattern_bytes;
  return (width == 1 || width == 2 || width == 4) && fill.bytes % width == 0 &&
         reinterpret_cast<std::uintptr_t>(fill.to) % width == 0;
}

}  // namespace reprise::cuda
