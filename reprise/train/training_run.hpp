// training_run: the events of a run, told to the parts of its training step (part.hpp).
//
//   training_run run{{&trunk, &heads, &loss}};
//   run.start(s);
//   for (…) { run.batch_start(); … forward, loss, backward … }
//   run.end();                                   // or run.failed(), where something was thrown
//
// A part that is missing makes every event a no-op for it; so does one that another run has taken
// since (it hears that run's events). The host waits for what was recorded where a part is cleared,
// and nowhere else; a part that has recorded nothing calls no device. Parts outlive the run. One
// thread at a time.
#pragma once

#include <cstdint>
#include <exception>
#include <source_location>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/train/run_part.hpp"

namespace reprise {

class training_run {
 public:
  explicit training_run(std::vector<run_part> parts) : parts_{std::move(parts)} {}
  // One that has started and not ended has failed.
  ~training_run();
  training_run(const training_run&) = delete;
  training_run& operator=(const training_run&) = delete;

  // run_start: takes the parts, and those that they hold; clears them; and lets those that are on
  // record where their gates find no reason against it. Throws the first failing drain, when all
  // are cleared: then no part records.
  void start(site at);
  // Before a batch: a backward that never came, as where the last step returned no loss, holds
  // nothing any more. Calls no device.
  void batch_start();
  // run_end: clears all parts, whatever fails, and then throws the first failing drain. A part that
  // was on and has replayed nothing says why.
  void end(std::source_location place = std::source_location::current());
  // run_failed: the same where the run threw. A failing drain is told in one line, so that the
  // run's own error is the one that is seen.
  void failed(std::source_location place = std::source_location::current()) noexcept;

 private:
  std::exception_ptr clear_all(std::source_location place);

  std::vector<run_part> parts_;
  std::vector<run_part> all_;  // with what they hold, each once, while it runs
  std::uint64_t id_ = 0;       // 0: it does not run
};

}  // namespace reprise
