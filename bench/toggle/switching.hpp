// What switching the taps of a step costs, mode by mode, each against what would be done anyway.
//
// Device time is of a replay behind another one, which hides what the host does ahead of it; host
// time is of the call alone, from idle unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/call_figure.hpp"
#include "bench/measure/median_interval.hpp"
#include "bench/measure/progress.hpp"
#include "bench/tap/layered_step.hpp"
#include "bench/tap/step_timer.hpp"
#include "bench/tap/watched_run.hpp"
#include "bench/toggle/switched_run.hpp"

namespace reprise::bench {

inline constexpr double idle_limit_us = 1.0;
inline constexpr double driven_limit_us = 30.0;       // of the device, over the host's set
inline constexpr double changed_node_limit_us = 1.0;  // of the host, for each ...
inline constexpr double changed_set_limit_us = 2.0;   // ... and for all of them
inline constexpr double recurring_limit_us = 1.0;     // of the host, over an unchanged set
inline constexpr double unchanged_limit_us = 0.2;     // of the host
inline constexpr double switched_often_limit = 0.01;  // of a fresh executable's replay
inline constexpr double in_flight_limit = 0.5;        // of what was in flight

struct toggle_figure {
  call_figure of;
  std::size_t points = 0;
  // Of differences between neighbours in time, where they were measured in pairs.
  std::optional<median_interval> adds;
  std::uint64_t changed_nodes = 0;  // by each call; 0: none, or not by the host
  // Pairs in which an executable was instantiated anew: they are in no figure.
  std::uint64_t left_out = 0;
};

// A change of a step of which replays are in flight: the call, and from there until all was done.
struct in_flight_figure {
  std::string what;
  std::size_t points = 0;
  std::uint64_t replays = 0;   // that were in flight
  std::uint64_t left_out = 0;  // as of toggle_figure
  spread call_us;
  spread flight_us;
  bool is_judged = false;

  // Nothing where nobody judges.
  std::optional<bool> within() const {
    if (!is_judged || call_us.count == 0) return std::nullopt;
    return call_us.median <= in_flight_limit * flight_us.median;
  }
};

struct switching_options {
  layered_shape shape;
  int repeats = 0;
  int pairs = 0;
  int schedules = 0;
};

struct toggle_figures {
  std::vector<toggle_figure> figures;
  std::vector<in_flight_figure> in_flight;
  std::vector<watched_counts> watched;    // without sets
  std::vector<switched_counts> switched;  // with
};

// With no point on, against a step that nobody watches, and all that is switched.
// The weights have the shape's layers and outlive it. The stream is idle at the end.
class switching_bench {
 public:
  switching_bench(pool& memory, stream_ref stream, void* native_stream,
                  const layer_weights& weights, const switching_options& options,
                  const progress& tell, toggle_figures& into);

  void idle();
  void switching();
  // Behind the last of them.
  void finish();

 private:
  using times = std::vector<double>;
  using timed = std::optional<double>;  // as switched_run::timed_call says

  // Of neighbours in time; where one of them is no figure, the other is none either.
  struct paired_times {
    times us, floor_us;
    std::uint64_t left_out = 0;

    void add(timed one, timed floor);
  };

  std::size_t points() const { return static_cast<std::size_t>(options_.shape.layers); }
  void say(const char* what, int done, int of) const;
  switched_run run_of(const char* what, toggle_mode mode) const;
  void warm_up(switched_run& one) const;
  double device_us(const std::function<void()>& call);
  timed device_us_of(const std::function<timed()>& call);
  double bare_host_us(watched_run& bare);
  toggle_figure& add(std::string what, std::string floor, const times& us, const times& floor_us,
                     std::optional<double> limit);
  toggle_figure& add(std::string what, std::string floor, const paired_times& both, double limit);

  void by_device();
  void by_host();
  void in_flight(switched_run& host);
  void by_variants();
  void unchanged();
  void switched_often();

  stream_ref stream_;
  step_timer timer_;
  switching_options options_;
  const progress& tell_;
  toggle_figures& into_;
  bool judged_;
  layered_step step_;
  watched_run lead_;
};

}  // namespace reprise::bench
