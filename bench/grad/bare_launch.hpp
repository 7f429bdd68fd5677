// The floor: a recording of so many kernels, launched by CUDA's own call.
#pragma once

#include <optional>

#include "bench/grad/grad_figure.hpp"
#include "bench/replay/bare_chain.hpp"

namespace reprise::bench {

class bare_launch {
 public:
  // Nothing is measured where there is no native stream. The sources and the pool outlive it.
  bare_launch(pool& memory, stream_ref stream, const chain_sources& sources, std::int64_t nodes,
              void* native_stream)
      : block_{stream.device()} {
    if (native_stream != nullptr) {
      chain_.emplace(memory, stream, sources, nodes, false, native_stream);
    }
  }

  bool is_here() const { return chain_.has_value(); }
  void launch() { chain_->launch(block_); }
  void time(const call_timer& timer) {
    if (chain_) timer.time(calls_, [&] { launch(); });
  }
  // What was timed so far goes.
  void begin() { calls_ = {}; }
  spread us() const { return spread_of(calls_.us); }

 private:
  host_block block_;  // of no use to a chain that stages nothing
  std::optional<bare_chain> chain_;
  timed_calls calls_;
};

}  // namespace reprise::bench
