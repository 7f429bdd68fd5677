// A monitor looks inside steps while they run: it copies chosen rows of what they mark to the host.
//
//   monitor eye{gpu};
//   eye.watch({"resid_pre:0-7", row_mode::last()});
//   eye.send_to(std::make_unique<my_sink>());
//   cache.observe(eye.observer());
//   eye.plan_step(rows_of_the_batch);     // whose rows the next step has
//   cache.run(stream, step, {...});       // recorded with producers, or replayed with them
//   eye.flush();                          // every record of every step above is at its sink
//
// docs/taps.md says what is promised. Steps under one monitor are run by one thread at a time;
// flush, await_request and counts may be called by any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/records/record_sink.hpp"
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

  // Opened now; what that throws passes through. Written to by the drain.
  void send_to(std::unique_ptr<record_sink> sink);

  // For replay_cache::observe.
  std::shared_ptr<mark_observer> observer() const;

  // Whose rows the next step under this monitor has, and whether it is gated; without it nobody's,
  // and it is. Throws what the device failed with, if it did.
  void plan_step(std::span<const request_rows> requests, step_gate gate = step_gate::gated);

  // Returns when the records of all steps so far have reached every sink. Throws what the device
  // failed with.
  void flush();
  // The same for those of one request, but for what sinks keep back.
  void await_request(std::uint64_t request);
  // Flushes, closes the sinks, and publishes nothing from then on. A second call does nothing.
  void stop();

  tap_counts counts() const;
  std::string metrics() const { return prometheus_text(counts()); }

 private:
  std::shared_ptr<tap_core> core_;
};

}  // namespace reprise
