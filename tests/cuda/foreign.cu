// What somebody else would do with CUDA, beside Reprise.
#include "foreign.hpp"

#include <cuda_runtime.h>

#include <stdexcept>

#include "reprise/cuda/borrow.hpp"

namespace reprise::test::foreign {

namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error{cudaGetErrorString(status)};
}

cudaStream_t stream_of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}
cudaGraph_t graph_of(void* graph) {
  return static_cast<cudaGraph_t>(graph);
}
cudaGraphExec_t executable_of(void* executable) {
  return static_cast<cudaGraphExec_t>(executable);
}

__global__ void add_grid(float* data, std::size_t count, float by) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) data[i] += by;
}

}  // namespace

void* make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void destroy_stream(void* stream) {
  check(cudaStreamDestroy(stream_of(stream)));
}

void synchronize(void* stream) {
  check(cudaStreamSynchronize(stream_of(stream)));
}

void begin_capture(void* stream) {
  check(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal));
}

void* end_capture(void* stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_of(stream), &graph));
  return graph;
}

void* instantiate(void* graph) {
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph_of(graph), 0));
  return executable;
}

void launch(void* executable, void* stream) {
  check(cudaGraphLaunch(executable_of(executable), stream_of(stream)));
}

void destroy_graph(void* graph) {
  check(cudaGraphDestroy(graph_of(graph)));
}

void destroy_executable(void* executable) {
  check(cudaGraphExecDestroy(executable_of(executable)));
}

void add(void* stream, float* data, std::size_t count, float by) {
  const auto blocks = static_cast<unsigned>((count + 255) / 256);
  add_grid<<<blocks, 256, 0, stream_of(stream)>>>(data, count, by);
  check(cudaGetLastError());
}

void* graph_with_a_child() {
  cudaGraph_t child = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  check(cudaGraphCreate(&child, 0));
  check(cudaGraphAddEmptyNode(&node, child, nullptr, 0));
  check(cudaGraphCreate(&graph, 0));
  check(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  check(cudaGraphDestroy(child));
  return graph;
}

stream_ref borrow_stream(device_ref device, void* stream) {
  return cuda::borrow(device, stream_of(stream));
}

stream_ref borrow_default_stream(device_ref device) {
  return cuda::borrow(device, static_cast<cudaStream_t>(nullptr));
}

graph_ref borrow_graph(device_ref device, void* graph) {
  return cuda::borrow(device, graph_of(graph));
}

executable_ref borrow_executable(device_ref device, void* executable) {
  return cuda::borrow(device, executable_of(executable));
}

}  // namespace reprise::test::foreign
