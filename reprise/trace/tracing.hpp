// A decorator that writes down every call of the seam: kinds, sizes, handles as small numbers, what
// work touches and where, which source line asked for it, and how it failed. No data and no
// addresses. Beside the call itself it costs a lock and a few hundred bytes.
//
//   const auto log = std::make_shared<trace_log>();
//   device gpu = open_device("cuda:0", {.trace = log});
//   …
//   write_trace(log->so_far(), "run.trace");
//
// Traits are not calls. Threads may call at once: each call is placed where it returned, so that
// what one thread saw finished lies before what it did next.
#pragma once

#include <cstddef>
#include <memory>

#include "reprise/device/api.hpp"
#include "reprise/trace/trace.hpp"

namespace reprise {

// Of one device. Thread safe; outlives the device that is traced into it.
class trace_log {
 public:
  // Calls beyond `most_calls` are made and counted, and not written down.
  explicit trace_log(std::size_t most_calls = std::size_t{1} << 20);
  ~trace_log();
  trace_log(const trace_log&) = delete;
  trace_log& operator=(const trace_log&) = delete;

  trace so_far() const;

  class state;  // tracing.cpp
  state& internals() { return *state_; }

 private:
  std::unique_ptr<state> state_;
};

std::unique_ptr<device_api> tracing(std::unique_ptr<device_api> inner,
                                    std::shared_ptr<trace_log> into);

}  // namespace reprise
