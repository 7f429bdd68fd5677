// Where producers run, and what they add to a step of layers that fill the card: beside the model,
// in its line, off, and with a ring that stays full. All of it against the same step unwatched.
//
// A step is timed twice. Behind another one its host part is hidden, as it is while a model
// generates; from idle it is not, and what the host adds may be seen in the time of the device.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/call_figure.hpp"
#include "bench/measure/median_interval.hpp"
#include "bench/measure/progress.hpp"
#include "bench/tap/layered_step.hpp"
#include "bench/tap/watched_run.hpp"

namespace reprise::bench {

inline constexpr int placement_main_buffers = 3;
inline constexpr int placement_in_a_row = 8;  // replays, with the drain at work meanwhile
inline constexpr double none_on_limit_us = 0.5;
// Over the unwatched step of 36 layers that read 32 MiB or more each, every residual tapped; none
// for other sizes.
std::optional<double> all_on_limit_us(const layered_shape& shape);

// One way of watching; each figure's floor is the same replay with nobody watching.
struct placement_row {
  call_figure device;                    // behind another step
  std::optional<call_figure> from_idle;  // of the device too; none of replays in a row
  std::optional<call_figure> host;       // the call alone, from idle
  // Of differences between neighbours in time, where they were measured in pairs.
  std::optional<median_interval> device_adds;
  std::optional<median_interval> from_idle_adds;
};

struct placement {
  layered_shape shape;
  std::vector<placement_row> rows;
  std::vector<watched_counts> runs;

  // One line; empty when all ran as planned.
  std::string failure() const;
};

struct placement_options {
  layered_shape shape;
  int repeats = 100;  // rounds in which each way is called once
  int pairs = 0;      // of an unwatched step and one with no point on; 0: the main ways alone
};

// With pairs, more ways are measured. The stream is idle at the end.
placement measure_placement(pool& memory, stream_ref stream, void* native_stream,
                            const layer_weights& weights, const placement_options& options,
                            const progress& tell);

}  // namespace reprise::bench
