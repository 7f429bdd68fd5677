// What became of the records that a sink was to get: exact at all times, for reports and metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace reprise {

// published = delivered + lost + waiting. A record that is lost is in one `lost_of` too.
struct sink_counts {
  std::uint64_t published = 0;
  std::uint64_t delivered = 0;
  std::uint64_t lost = 0;
  std::uint64_t waiting = 0;  // in the queue, or on their way into the sink
  std::uint64_t waiting_bytes = 0;
  std::uint64_t dropped = 0;  // of those that were lost: since the queue was full
  std::uint64_t batches = 0;  // that the sink took
  std::uint64_t retries = 0;
  std::uint64_t flushes = 0;
  std::uint64_t failed_flushes = 0;
  std::uint64_t waits = 0;  // for room, by whoever hands records over
  std::int64_t waited_us = 0;
  std::int64_t longest_lag_us = 0;  // from being handed over to being delivered
  std::map<std::string, std::uint64_t, std::less<>> lost_of{};  // by point, such as "resid_pre:5"
  std::string first_error{};
};

struct named_sink_counts {
  std::string name;
  sink_counts counts;
};

// Prometheus text, with the label sink="NAME" throughout; the lines of one metric are together, as
// its readers want them.
std::string metrics_text(std::span<const named_sink_counts> sinks);

// "sink 'run1' lost 1 of 100 records (resid_pre:3 1): WHY"; empty where none was lost and every
// flush succeeded.
std::string loss_text(std::string_view sink, const sink_counts& counts);

}  // namespace reprise
