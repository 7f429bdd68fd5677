// Where a drain lets records out: functions that are called at once, and sinks behind their queues.
//
// A function sees records where they lie, on the thread that drains, and holds that up. For all
// sinks together records are copied once; a full queue holds the drain up as its options say, and
// so, in the end, the ring and the plan. Whatever fails costs its own records and nothing else:
// they are counted, and somebody who flushes or closes is told. Safe from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "reprise/base/mutex.hpp"
#include "reprise/records/multiplexer.hpp"
#include "reprise/tap/tap_counts.hpp"

namespace reprise {

// The record is good during the call. What it throws costs that record alone.
using record_call = std::function<void(const tap_record&)>;

class record_outlets {
 public:
  // `run`: what sinks are opened with.
  explicit record_outlets(std::string run) : sinks_{std::move(run)} {}

  // Opens it; what that throws passes through, and nothing is kept. A name that is taken gets a
  // number, since counts are told apart by it.
  void add(std::unique_ptr<record_sink> sink, sink_queue_options options);
  void add(record_call call);

  // One call at a time. Throws nothing.
  void deliver(std::span<const tap_record> records);

  // All that was delivered before is in every sink, flushed, or counted as lost. Throws sink_error,
  // once for each loss: where a function threw, and where the sink was to raise it (when_lost).
  void flush();
  void await_request(std::uint64_t request);
  // The same, closes every sink, and throws sink_error where any record was ever lost or a sink
  // failed to flush or to close. A second call does nothing.
  void close();

  // published = delivered + lost + what waits in queues, over all functions and sinks.
  void count(tap_counts& into) const;
  std::vector<named_sink_counts> counts() const;
  std::string metrics() const;

 private:
  void call_with_each(const record_call& call, std::span<const tap_record> records);
  void note_called(std::uint64_t records);
  void lose(std::uint64_t records, const std::string& why);
  void keep(const std::string& line);
  void raise();

  mutex calling_;  // of the functions; a device that owns time may take the turn in one
  std::vector<record_call> calls_;

  mutable std::shared_mutex listed_;  // which sinks there are; shared by whoever uses them
  sink_multiplexer sinks_;
  std::atomic<bool> closed_{false};

  mutable std::mutex guard_;  // of all below
  std::uint64_t called_ = 0;  // records that functions, or no queue, were handed
  std::uint64_t lost_ = 0;    // of those
  std::string first_loss_;
  std::string to_raise_;
};

}  // namespace reprise
