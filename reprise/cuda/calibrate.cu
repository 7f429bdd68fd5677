#include "reprise/cuda/calibrate.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

namespace reprise::cuda {

namespace {

constexpr int nodes = 2048;
constexpr int most_executables = 32;
// The driver takes memory in pieces of 2 MiB: one piece more or less is then an eighth.
constexpr std::size_t enough = std::size_t{16} << 20;

__global__ void nothing() {}

cudaError_t chain_of_kernels(cudaGraph_t graph) {
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(&nothing);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(1);
  cudaGraphNode_t last = nullptr;
  for (int i = 0; i != nodes; ++i) {
    const cudaError_t status =
        cudaGraphAddKernelNode(&last, graph, i == 0 ? nullptr : &last, i == 0 ? 0 : 1, &parameters);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

cudaError_t free_bytes(std::size_t& free) {
  std::size_t total = 0;
  return cudaMemGetInfo(&free, &total);
}

cudaError_t add_executable(cudaGraph_t graph, cudaStream_t stream,
                           std::vector<cudaGraphExec_t>& made) {
  cudaGraphExec_t executable = nullptr;
  cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  if (status != cudaSuccess) return status;
  made.push_back(executable);
  status = cudaGraphUpload(executable, stream);
  return status == cudaSuccess ? cudaStreamSynchronize(stream) : status;
}

// The first executable pays for what the driver sets up once, and is not counted.
cudaError_t measure(cudaGraph_t graph, cudaStream_t stream, std::vector<cudaGraphExec_t>& made,
                    std::size_t& bytes_per_node) {
  std::size_t before = 0;
  cudaError_t status = add_executable(graph, stream, made);
  if (status == cudaSuccess) status = free_bytes(before);
  std::size_t taken = 0;
  while (status == cudaSuccess && taken < enough && made.size() <= most_executables) {
    status = add_executable(graph, stream, made);
    std::size_t now = 0;
    if (status == cudaSuccess) status = free_bytes(now);
    taken = before > now ? before - now : 0;
  }
  if (status != cudaSuccess || made.size() < 2) return status;
  bytes_per_node = std::max<std::size_t>(1, taken / ((made.size() - 1) * nodes));
  return cudaSuccess;
}

}  // namespace

cudaError_t calibrate_nodes(std::size_t& bytes_per_node) {
  cudaGraph_t graph = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<cudaGraphExec_t> made;
  cudaError_t status = cudaGraphCreate(&graph, 0);
  if (status == cudaSuccess) status = chain_of_kernels(graph);
  if (status == cudaSuccess) status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (status == cudaSuccess) status = measure(graph, stream, made, bytes_per_node);
  for (const cudaGraphExec_t executable : made) cudaGraphExecDestroy(executable);
  if (stream != nullptr) cudaStreamDestroy(stream);
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status;
}

}  // namespace reprise::cuda
