// A function of the host on its way through a stream or a graph. For this room's .cpp files.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>
#include <list>
#include <string>
#include <string_view>

namespace reprise::cuda {

// Runs on a thread of the driver, which holds the stream meanwhile. What the function throws is
// reported there, since nobody can catch it. `done` is set last: an eager function is freed by its
// owner once it is set, never on the driver's thread, because what the function holds may call CUDA
// when it dies and CUDA forbids that there.
struct host_function {
  host_function(std::string_view label_text, const std::function<void()>& function)
      : label{label_text}, run{function} {}

  std::string label;
  std::function<void()> run;
  std::atomic<bool> done{false};
};

// A list, because the driver holds the addresses.
using host_functions = std::list<host_function>;

// Enqueues or captures it. `function` stays where it is until it has run for the last time.
cudaError_t launch_host_function(cudaStream_t stream, host_function& function) noexcept;

// Frees those at the front that have run; a stream runs them in order. Only for the owner's thread.
void free_done(host_functions& functions);

}  // namespace reprise::cuda
