// The kernels that the tests of this room launch.
#include "bodies.hpp"

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include "reprise/cuda/call.cuh"

namespace reprise::test {

namespace {

template <class Arguments>
const Arguments& unpacked(const std::byte* arguments) {
  return *reinterpret_cast<const Arguments*>(arguments);
}

cudaStream_t stream_of(void* call) {
  return static_cast<cuda_call*>(call)->stream();
}

__global__ void add_grid(float* data, std::size_t count, float by) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) data[i] += by;
}

__global__ void idle_grid() {}

void launch_add(cudaStream_t stream, float* data, std::size_t count, float by) {
  const auto blocks = static_cast<unsigned>((count + 255) / 256);
  add_grid<<<blocks, 256, 0, stream>>>(data, count, by);
}

}  // namespace

void add(void* call, const std::byte* arguments) {
  const auto& a = unpacked<add_arguments>(arguments);
  launch_add(stream_of(call), a.data, a.count, a.by);
}

void launch_too_many_threads(void* call, const std::byte*) {
  idle_grid<<<1, 4096, 0, stream_of(call)>>>();
}

int error_slot() {
  return static_cast<int>(cudaPeekAtLastError());
}

void synchronize_native(void* native_stream) {
  cudaStreamSynchronize(static_cast<cudaStream_t>(native_stream));
}

void add_native(void* native_stream, float* data, std::size_t count, float by) {
  launch_add(static_cast<cudaStream_t>(native_stream), data, count, by);
}

float* allocate_foreign_pinned(std::size_t count) {
  void* block = nullptr;
  return cudaMallocHost(&block, count * sizeof(float)) == cudaSuccess ? static_cast<float*>(block)
                                                                      : nullptr;
}

void free_foreign_pinned(float* block) {
  cudaFreeHost(block);
}

bool context_is_active(int ordinal) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto state = reinterpret_cast<CUresult (*)(CUdevice, unsigned*, int*)>(
      dlsym(driver, "cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 0;
  init(0);
  state(ordinal, &flags, &active);  // a CUdevice is its ordinal
  return active != 0;
}

}  // namespace reprise::test
