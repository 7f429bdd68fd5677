// The raw peer on CUDA. What it launches are the bodies of reprise/ops, so that the nodes are the
// same kernels with the same grids.
#include "bench/replay/raw_cuda.hpp"

#include <cuda_runtime.h>

#include <string>

#include "reprise/base/error.hpp"
#include "reprise/cuda/call.cuh"
#include "reprise/ops/rms_norm.hpp"

namespace reprise::bench {

namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw error{std::string{"the raw peer's "} + call + " failed: " + cudaGetErrorString(status) +
              "; see whether `reprise doctor` lists the device as usable"};
}

// Enqueues the chain as a body of Reprise's would be called, without Reprise.
void enqueue_chain(cudaStream_t stream, const chain_memory& memory, const float* gain,
                   std::int64_t nodes) {
  cuda_call call{stream, {}};
  const read<float> gains{view<const float>{gain, static_cast<std::size_t>(chain_width)}};
  walk_chain(nodes, memory, [&](const float* from, float* to) {
    ops::rms_norm_cuda<float, float>(call, read<float>{view<const float>{from, chain_elements}},
                                     gains, write<float>{view<float>{to, chain_elements}},
                                     chain_width, chain_epsilon);
  });
}

}  // namespace

bool raw_cuda_is_built() {
  return true;
}

struct raw_chain::state {
  ~state() {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (recorder != nullptr) cudaStreamDestroy(recorder);
  }

  cudaStream_t launched_on = nullptr;
  cudaStream_t recorder = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
};

raw_chain::raw_chain(void* native_stream, const chain_memory& memory, const float* gain,
                     std::int64_t nodes)
    : state_{std::make_unique<state>()} {
  state& s = *state_;
  s.launched_on = static_cast<cudaStream_t>(native_stream);
  check(cudaStreamCreateWithFlags(&s.recorder, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaStreamBeginCapture(s.recorder, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  enqueue_chain(s.recorder, memory, gain, nodes);
  check(cudaStreamEndCapture(s.recorder, &s.graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&s.executable, s.graph, 0), "cudaGraphInstantiate");
  check(cudaGraphUpload(s.executable, s.launched_on), "cudaGraphUpload");
}

raw_chain::~raw_chain() = default;

void raw_chain::launch() {
  check(cudaGraphLaunch(state_->executable, state_->launched_on), "cudaGraphLaunch");
}

void raw_chain::copy_and_launch(const float* pinned, float* to) {
  check(cudaMemcpyAsync(to, pinned, chain_bytes, cudaMemcpyHostToDevice, state_->launched_on),
        "cudaMemcpyAsync");
  launch();
}

struct raw_timer::state {
  ~state() {
    if (begin != nullptr) cudaEventDestroy(begin);
    if (end != nullptr) cudaEventDestroy(end);
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

raw_timer::raw_timer(void* native_stream) : state_{std::make_unique<state>()} {
  state_->stream = static_cast<cudaStream_t>(native_stream);
  check(cudaEventCreate(&state_->begin), "cudaEventCreate");
  check(cudaEventCreate(&state_->end), "cudaEventCreate");
}

raw_timer::~raw_timer() = default;

void raw_timer::start() {
  check(cudaEventRecord(state_->begin, state_->stream), "cudaEventRecord");
}

void raw_timer::stop() {
  check(cudaEventRecord(state_->end, state_->stream), "cudaEventRecord");
}

double raw_timer::us() const {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, state_->begin, state_->end), "cudaEventElapsedTime");
  return 1000.0 * static_cast<double>(ms);
}

}  // namespace reprise::bench
