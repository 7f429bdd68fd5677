// The CUDA bodies of the conformance kernels: one thread does it all, since only values and order
// matter. And the raw calls of bodies.hpp.
#include "tests/conformance/bodies.hpp"

#include "reprise/cuda/call.cuh"
#include "tests/conformance/kernels.hpp"

namespace reprise::test::REPRISE_BODIES {

namespace {

__global__ void append_grid(std::int32_t* x, std::size_t count, std::int32_t digit) {
  for (std::size_t i = 0; i < count; ++i) x[i] = 10 * x[i] + digit;
}

// Waits for the grid before it, whatever its arguments are: a kernel that may be launched with a
// programmatic edge has no way around that.
__global__ void append_after_grid(std::int32_t* x, std::int32_t digit) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  *x = 10 * *x + digit;
}

__global__ void hold_grid(const volatile std::int32_t* released) {
  constexpr unsigned long long limit_ns = 20ull * 1000 * 1000 * 1000;
  unsigned long long begin = 0;
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (*released == 0 && now - begin < limit_ns);
}

__global__ void workspace_grid(std::int32_t* scratch, write<std::int32_t> out, std::int32_t value) {
  for (std::size_t i = 0; i < out.size(); ++i) scratch[i] = value;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = scratch[i];
}

__global__ void stray_grid(std::int32_t* address, std::int32_t value) {
  *address = value;
}

}  // namespace

void append_digit_cuda(cuda_call& call, inout<std::int32_t> x, std::int32_t digit) {
  append_grid<<<1, 1, 0, call.stream()>>>(x.data(), x.size(), digit);
}

void hold_cuda(cuda_call& call, read<std::int32_t> released) {
  hold_grid<<<1, 1, 0, call.stream()>>>(released.data());
}

void through_workspace_cuda(cuda_call& call, write<std::int32_t> out, std::int32_t value) {
  workspace_grid<<<1, 1, 0, call.stream()>>>(
      reinterpret_cast<std::int32_t*>(call.workspace().data()), out, value);
}

void stray_cuda(cuda_call& call, std::int32_t value) {
  stray_grid<<<1, 1, 0, call.stream()>>>(reinterpret_cast<std::int32_t*>(16), value);
}

}  // namespace reprise::test::REPRISE_BODIES

namespace reprise::test {

int native_error_slot() {
  return static_cast<int>(cudaPeekAtLastError());
}

void append_twice_native(void* native_stream, std::int32_t* number, std::int32_t digit) {
  auto* const stream = static_cast<cudaStream_t>(native_stream);
  append_grid<<<1, 1, 0, stream>>>(number, 1, digit);
  append_grid<<<1, 1, 0, stream>>>(number, 1, digit);
}

void allocate_natively(void* native_stream) {
  auto* const stream = static_cast<cudaStream_t>(native_stream);
  void* memory = nullptr;
  if (cudaMallocAsync(&memory, 4096, stream) == cudaSuccess) cudaFreeAsync(memory, stream);
}

void append_programmatically_native(void* native_stream, std::int32_t* number, std::int32_t first,
                                    std::int32_t second) {
  auto* const stream = static_cast<cudaStream_t>(native_stream);
  append_grid<<<1, 1, 0, stream>>>(number, 1, first);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = dim3{1, 1, 1};
  how.blockDim = dim3{1, 1, 1};
  how.stream = stream;
  how.attrs = &early;
  how.numAttrs = 1;
  cudaLaunchKernelEx(&how, append_after_grid, number, second);
}

}  // namespace reprise::test
