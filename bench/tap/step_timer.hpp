// The time that a device takes for what is enqueued between two points of a stream.
#pragma once

#include <memory>

#include "bench/replay/raw_cuda.hpp"
#include "reprise/device/device.hpp"

namespace reprise::bench {

// By two CUDA events on a GPU. Elsewhere time of the host, from `start`, which waits for what is
// queued, until the stream was synchronised again.
class step_timer {
 public:
  // `native_stream`: as bench/replay's native_stream_of says; null where there is none.
  step_timer(stream_ref stream, void* native_stream);

  void start();
  // Ends, waits for the stream, and gives microseconds.
  double stop();

 private:
  stream_ref stream_;
  std::unique_ptr<raw_timer> raw_;
  double began_ = 0;
};

}  // namespace reprise::bench
