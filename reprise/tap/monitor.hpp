// A monitor looks inside steps while they run: it copies chosen rows of what they mark to the host.
//
//   monitor eye{gpu};
//   eye.watch({"resid_pre:0-7", row_mode::last()});
//   eye.send_to(open_sink("run1"));
//   cache.observe(eye.observer());
//   eye.plan_step(rows_of_the_batch);     // whose rows the next step has
//   cache.run(stream, step, {...});       // recorded with producers, or replayed with them
//   eye.flush();                          // every record of every step above is at its sink
//
// docs/taps.md says what is promised. Steps under one monitor are run by one thread at a time,
// which says what is watched and plans; all other calls may be made by any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/records/sink_queue.hpp"
#include "reprise/replay/marks.hpp"
#include "reprise/tap/monitor_options.hpp"
#include "reprise/tap/tap_counts.hpp"
#include "reprise/tap/tap_spec.hpp"

namespace reprise {

class tap_core;

class monitor {
 public:
  // The device has the kernel publish_rows, as builtin_kernels() do. Throws usage_error, naming the
  // option, where a bound makes no sense.
  explicit monitor(device_ref device, monitor_options options = {});
  // Stops; what stop() would throw goes to the error handler.
  ~monitor();
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;

  // The active specs, replaced as a whole: recordings of other specs are not used for these.
  void watch(std::vector<tap_spec> specs);
  void watch(tap_spec only) { watch(std::vector<tap_spec>{std::move(only)}); }
  // Of what is watched, what fires from the next step on, with no recording anew. None: steps
  // replay what is recorded without a monitor, and pay nothing for this one.
  void enable(point_set enabled);
  // The first part of a spec that no mark seen so far fits; empty: each fits one.
  std::string unmatched() const;

  // Records of what is drained from now on, behind a queue of the sink's own (sink_queue.hpp).
  // Opened now; what that throws passes through. A full queue holds the drain up, or drops, as its
  // options say; a drain that is held up fills the ring, for which monitor_options has the rule.
  void send_to(std::unique_ptr<record_sink> sink, sink_queue_options options = {});
  // The same records, in place: the drain calls this with each, on its thread, and goes on when it
  // returns. For counting and for measuring the drain alone, and on simulated devices, where the
  // threads of queues are none of the device's. It calls no device. What it throws costs that
  // record, and nobody else's.
  void deliver_to(std::function<void(const tap_record&)> call);

  // For replay_cache::observe.
  std::shared_ptr<mark_observer> observer() const;

  // Whose rows the next step under this monitor has, and whether it is gated; without it nobody's,
  // and it is. Throws what the device failed with, if it did.
  void plan_step(std::span<const request_rows> requests, step_gate gate = step_gate::gated);

  // Returns when the records of all steps so far are in every sink, which has flushed, or are
  // counted as lost. Throws what the device failed with; else sink_error, once for each loss, where
  // a sink was to raise what it loses (when_lost::raise, as it is unless said otherwise) or a
  // function threw. Steps never throw for a sink, and no sink waits for another's.
  void flush();
  // The same for those of one request.
  void await_request(std::uint64_t request);
  // Flushes, closes the sinks, and publishes nothing from then on. Throws as flush() for the
  // device; else sink_error, whatever when_lost says, where any record was ever lost, or a sink
  // failed to flush or to close. A second call does nothing.
  void stop();

  tap_counts counts() const;
  // Of each sink, in the order in which they came.
  std::vector<named_sink_counts> sink_counts() const;
  // Prometheus text of both.
  std::string metrics() const;

 private:
  std::shared_ptr<tap_core> core_;
};

}  // namespace reprise
