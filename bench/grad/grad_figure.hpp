// Calls that are timed one by one, with what they asked of the device, and figures of them.
//
// The calls of the seam are counted on the device that is timed: some nanoseconds a call of the
// seam, which the bare launch does not pay.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/call_figure.hpp"
#include "reprise/base/clock.hpp"
#include "reprise/device/counting.hpp"
#include "reprise/device/device.hpp"

namespace reprise::bench {

// By kind of call.
using seam_totals = std::array<std::uint64_t, seam_calls>;

struct timed_calls {
  std::vector<double> us;
  seam_totals made{};  // of all of them together
};

class call_timer {
 public:
  // The counts are those of the stream's device, on which nobody else is at work.
  call_timer(stream_ref stream, const call_counts& counts) : stream_{stream}, counts_{counts} {}

  // Nothing is queued when the call begins, so that the host never waits for the device.
  template <class Call>
  void time(timed_calls& into, Call&& call) const {
    stream_.synchronize();
    const seam_totals before = now();
    const double began = now_us();
    call();
    into.us.push_back(now_us() - began);
    const seam_totals after = now();
    for (std::size_t i = 0; i < after.size(); ++i) into.made[i] += after[i] - before[i];
  }

  stream_ref stream() const { return stream_; }

 private:
  seam_totals now() const;

  stream_ref stream_;
  const call_counts& counts_;
};

// What one call has to ask of the device.
struct seam_plan {
  std::uint64_t launches = 0;
  std::uint64_t copies = 0;
  std::uint64_t kernels = 0;

  bool operator==(const seam_plan&) const = default;
};

struct grad_figure {
  call_figure time;
  seam_totals made{};  // in all calls
  seam_plan planned;   // in each

  double per_call(seam_call kind) const;
  // One line; empty when all calls together asked for as much as was planned.
  std::string failure() const;
};

grad_figure figure_of(std::string what, timed_calls calls, const seam_plan& planned,
                      std::string floor, const spread& floor_us,
                      std::optional<double> limit_us = std::nullopt);

}  // namespace reprise::bench
