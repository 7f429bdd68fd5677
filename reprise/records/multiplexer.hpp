// Several sinks as one: each behind its own queue, and none that fails or is slow stops another.
//
// Records are copied once, whatever the number of sinks. Safe from any thread, but for add() and
// close(), which come first and last.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/records/sink_queue.hpp"

namespace reprise {

class sink_multiplexer {
 public:
  // `run`: what each sink is opened with.
  explicit sink_multiplexer(std::string run) : run_{std::move(run)} {}

  // Opens it; what open() throws passes through, and the sinks that are there stay.
  void add(std::unique_ptr<record_sink> sink, sink_queue_options options = {});

  // To all of them. Queues with room get the records at once; then the full ones are waited for,
  // each as its options say. Returns how many took them. Throws usage_error, before any sink is
  // given anything, for records that break their schema. Where a queue raises what was lost before,
  // it and the others are given the records all the same; then the first such error is thrown.
  std::size_t publish(std::span<const tap_record> records);

  // As of sink_queue, of all sinks: every one is flushed or closed, then the first error is thrown.
  void flush();
  void await_request(std::uint64_t request);
  void close();

  const std::vector<std::unique_ptr<sink_queue>>& queues() const noexcept { return queues_; }
  std::vector<named_sink_counts> counts() const;
  // Prometheus text of all sinks.
  std::string metrics() const;

 private:
  std::string run_;
  std::vector<std::unique_ptr<sink_queue>> queues_;
};

}  // namespace reprise
