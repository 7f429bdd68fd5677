// What a monitor has done so far, and the same as Prometheus text. Exact at all times; read under
// the monitor's lock, so a copy is consistent; what sinks did is read right after it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reprise {

struct point_counts {
  std::string kind;
  int layer = 0;
  int shard = 0;  // of `shards`; 1: the whole tensor
  int shards = 1;
  std::uint64_t planned = 0;    // publications
  std::uint64_t published = 0;  // and found, whole
  std::uint64_t dropped = 0;    // never planned, since there was no room
  std::uint64_t lost = 0;       // planned, and never found as planned
};

// planned = published + lost + those under way.
struct tap_counts {
  std::uint64_t steps = 0;  // that were run under the monitor
  std::uint64_t planned = 0;
  std::uint64_t published = 0;
  std::uint64_t records = 0;  // handed to the sinks
  std::uint64_t reserved_bytes = 0;
  std::uint64_t published_bytes = 0;  // of the ring, padding included
  std::uint64_t drained_bytes = 0;    // likewise
  std::uint64_t record_bytes = 0;     // of rows
  std::uint64_t spans = 0;            // copies that drained them
  std::uint64_t spans_by_kernel = 0;  // of those, by a kernel and not by the copy engine

  std::uint64_t dropped = 0;
  std::uint64_t lost = 0;         // the sum of the next three and of those that never came
  std::uint64_t overwritten = 0;  // a later lap's word was found in their slot
  std::uint64_t mismatched = 0;   // another point, or other bytes than planned
  std::uint64_t mislabelled = 0;  // the marker says otherwise
  std::uint64_t clamped = 0;      // a row table was cut; delivered as far as it fits

  std::uint64_t reserve_waits = 0;
  std::uint64_t waited_ms = 0;
  std::uint64_t timed_out = 0;  // waits that ended in a drop
  std::uint64_t never_fit = 0;  // steps and points that were larger than the ring or the staging
  std::uint64_t direct = 0;     // publications that went straight to the host
  std::uint64_t uploads = 0;    // plans that a launch was told of
  std::uint64_t withdrawn = 0;  // plans whose launch failed
  std::uint64_t flushes = 0;
  // Records, over all sinks: published = delivered + lost + those that wait in queues.
  std::uint64_t sink_published = 0;
  std::uint64_t sink_delivered = 0;
  std::uint64_t sink_lost = 0;

  std::vector<point_counts> points;
};

std::string prometheus_text(const tap_counts& counts);

}  // namespace reprise
