// Looks inside a CUDA graph of somebody else: a program that captures its own layers and launches
// them, and what is added to it so that a monitor hears, or does not, what each layer is given.
// docs/taps.md, "Graphs of somebody else", explains it.
//
// It exits with 0 when the records are what a run on the host says, and the outputs of every
// watched launch those of the unwatched graph, bit for bit. Without a GPU it says so and does
// nothing.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <vector>

#include "reprise/cuda/borrow.hpp"
#include "reprise/platform/platform.hpp"
#include "reprise/tap/monitor.hpp"

namespace {

constexpr int layers = 4, rows = 8, width = 256, count = rows * width, steps = 12;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error{cudaGetErrorString(status)};
}

__global__ void begin(float* h, const int* step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  h[i] = static_cast<float>(*step * 10'000 + i);
}
__global__ void run_layer(const float* h, float* next, int layer) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  next[i] = h[i] + static_cast<float>(layer + 1);
}

// The program as it is, which knows nothing of Reprise. Its layers take turns with two buffers.
struct program {
  program() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc(&h[0], count * sizeof(float)));
    check(cudaMalloc(&h[1], count * sizeof(float)));
    check(cudaMalloc(&step, sizeof(int)));
  }
  ~program() {
    drop_graph();
    cudaFree(step);
    cudaFree(h[1]);
    cudaFree(h[0]);
    cudaStreamDestroy(stream);
  }
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  void begin_capture() const {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  // `passes(layer, h, next)`: what a layer is given, and what it is about to overwrite.
  template <class Hook>
  void forward(const Hook& passes) const {
    begin<<<rows, width, 0, stream>>>(h[0], step);
    for (int layer = 0; layer < layers; ++layer) {
      passes(layer, h[layer % 2], h[(layer + 1) % 2]);
      run_layer<<<rows, width, 0, stream>>>(h[layer % 2], h[(layer + 1) % 2], layer);
    }
  }
  void end_capture() {
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority));
    check(cudaGraphUpload(executable, stream));
  }
  void drop_graph() {
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
    executable = nullptr;
    graph = nullptr;
  }

  template <class Launch>
  std::vector<float> run(int number, const Launch& launch) const {
    std::vector<float> out(count);
    check(cudaMemcpyAsync(step, &number, sizeof number, cudaMemcpyHostToDevice, stream));
    launch();
    check(cudaMemcpyAsync(out.data(), h[layers % 2], count * sizeof(float), cudaMemcpyDeviceToHost,
                          stream));
    check(cudaStreamSynchronize(stream));
    return out;
  }

  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  float* h[2] = {nullptr, nullptr};
  int* step = nullptr;
};

struct heard {
  int records = 0, wrong = 0;

  // The last row of what the layer was given in this step.
  void take(const reprise::tap_record& one) {
    ++records;
    float values[width] = {};
    bool right = one.bytes.size() == sizeof values && one.rows == 1;
    if (right) std::memcpy(values, one.bytes.data(), sizeof values);
    const int added = one.layer * (one.layer + 1) / 2;
    const int first = static_cast<int>(one.step) * 10'000 + (rows - 1) * width + added;
    for (int i = 0; i < width; ++i) right = right && values[i] == static_cast<float>(first + i);
    if (!right) ++wrong;
  }
};

// What is heard of each third of the steps.
struct part {
  const char* enabled;
  int points;
};
constexpr part parts[] = {{"resid_pre:*", layers}, {"none", 0}, {"resid_pre:1+3", 2}};

bool watch(program& theirs, const std::vector<std::vector<float>>& bare) {
  const reprise::device gpu = reprise::open_device(reprise::cuda::current_device());
  const reprise::stream_ref s = reprise::cuda::borrow(gpu, theirs.stream);
  heard what;
  int outputs = 0, expected = 0;
  {
    reprise::monitor eye{gpu};
    eye.watch({"resid_pre:*", reprise::row_mode::last()});
    eye.deliver_to([&](const reprise::tap_record& one) { what.take(one); });
    const auto tensor = [](float* h) {
      return reprise::as_tensor(reprise::view<float>{h, count}, {rows, width});
    };
    theirs.begin_capture();
    {
      reprise::tap_window window = eye.open_window(s);
      theirs.forward([&](int layer, float* h, float* next) {
        window.tap({"resid_pre", layer}, tensor(h));
        window.before_write(tensor(next));
      });
    }
    theirs.end_capture();
    reprise::watched_graph watched = eye.bind(reprise::cuda::borrow(gpu, theirs.graph),
                                              reprise::cuda::borrow(gpu, theirs.executable));
    for (int i = 0; i < steps; ++i) {
      const part& now = parts[i * 3 / steps];
      eye.enable(now.enabled);
      expected += now.points;
      const auto out = theirs.run(i, [&] { watched.launch(s); });  // was cudaGraphLaunch
      if (out == bare[static_cast<std::size_t>(i)]) ++outputs;
    }
    eye.flush();
    eye.stop();
    // It is gone: the owner's own launch runs the model, and nobody hears of it.
    const auto out =
        theirs.run(0, [&] { check(cudaGraphLaunch(theirs.executable, theirs.stream)); });
    if (out != bare[0]) --outputs;
  }
  theirs.drop_graph();
  reprise::cuda::give_back(gpu, theirs.stream);
  std::printf("%d launches watched: %d records of %d, %d of them wrong; %d outputs as unwatched\n",
              steps, what.records, expected, what.wrong, outputs);
  return what.records == expected && what.wrong == 0 && outputs == steps;
}

}  // namespace

int main() {
  int cards = 0;
  if (cudaGetDeviceCount(&cards) != cudaSuccess || cards == 0) {
    std::printf("no GPU answers: nothing to watch\n");
    return 0;
  }
  try {
    program theirs;
    theirs.begin_capture();
    theirs.forward([](int, float*, float*) {});
    theirs.end_capture();
    std::vector<std::vector<float>> bare;
    for (int i = 0; i < steps; ++i) {
      bare.push_back(
          theirs.run(i, [&] { check(cudaGraphLaunch(theirs.executable, theirs.stream)); }));
    }
    theirs.drop_graph();
    return watch(theirs, bare) ? 0 : 1;
  } catch (const std::exception& failed) {
    std::printf("failed: %s\n", failed.what());
    return 1;
  }
}
