// The peer: the same chain captured and launched by calling CUDA itself, as hand-written code does.
//
// Only this calls CUDA; everything else of the bench goes through Reprise. A build without CUDA has
// none of it, and says so. One thread at a time, on which Reprise has used the device before.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/replay/chain.hpp"

namespace reprise::bench {

// Whether this build has the peer.
bool raw_cuda_is_built();

// A chain as one executable of CUDA's own. The native stream and the memory outlive it, and its
// last launch has finished when it goes. Throws error when a call fails.
class raw_chain {
 public:
  raw_chain(void* native_stream, const chain_memory& memory, const float* gain, std::int64_t nodes);
  ~raw_chain();
  raw_chain(const raw_chain&) = delete;
  raw_chain& operator=(const raw_chain&) = delete;

  // One call of cudaGraphLaunch.
  void launch();
  // The same behind one cudaMemcpyAsync of a block from pinned memory to `to`.
  void copy_and_launch(const float* pinned, float* to);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// Device time between two points of a stream, by CUDA events.
class raw_timer {
 public:
  explicit raw_timer(void* native_stream);
  ~raw_timer();
  raw_timer(const raw_timer&) = delete;
  raw_timer& operator=(const raw_timer&) = delete;

  void start();
  void stop();
  // Microseconds between the two; the stream has been synchronised since.
  double us() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace reprise::bench
