#include "reprise/cuda/host_function.hpp"

#include <fmt/format.h>

#include <exception>

#include "reprise/base/error.hpp"

namespace reprise::cuda {

namespace {

void run_on_driver_thread(void* context) {
  auto& function = *static_cast<host_function*>(context);
  try {
    function.run();
  } catch (const std::exception& thrown) {
    report_error(
        fmt::format("host call '{}' threw on the stream: {}", function.label, thrown.what()));
  } catch (...) {
    report_error(fmt::format("host call '{}' threw on the stream", function.label));
  }
  function.done.store(true, std::memory_order_release);
}

}  // namespace

cudaError_t launch_host_function(cudaStream_t stream, host_function& function) noexcept {
  return cudaLaunchHostFunc(stream, &run_on_driver_thread, &function);
}

void free_done(host_functions& functions) {
  auto first_pending = functions.begin();
  while (first_pending != functions.end() && first_pending->done.load(std::memory_order_acquire)) {
    ++first_pending;
  }
  // Taken out first: what dies here may enqueue on this very stream.
  host_functions done;
  done.splice(done.begin(), functions, functions.begin(), first_pending);
}

}  // namespace reprise::cuda
