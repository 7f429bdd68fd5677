// The workload `memory`: a byte-level language model with sparse delta memories, trained on a text,
// its forwards, backwards, updates and samples recorded and replayed, and compared with a plain
// run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "workloads/memory/options.hpp"
#include "workloads/memory/plan.hpp"
#include "workloads/memory/training.hpp"

namespace reprise::memory {

// Host time of steps: from before the first forward until the losses are there. Of all but the
// first step, which records.
struct step_times {
  double us = 0;
  std::uint64_t steps = 0;
};

// With the plain run: where the two first differ; empty: nowhere.
struct run_comparison {
  std::uint64_t steps = 0;  // that were compared
  std::string first;
};

struct memory_report {
  std::size_t text_bytes = 0;
  std::size_t parameters = 0;
  float loss_first = 0;
  float loss_last = 0;
  std::string sample;
  run_counts counts;
  run_counts planned;
  std::optional<run_comparison> compared;
  std::string plain_differs;  // how the plain run beside did not run as planned; empty: it did
  step_times times;           // of the run
  step_times plain_times;     // of the plain run beside it
  std::size_t weight_bytes = 0;
  std::size_t recording_bytes = 0;

  // What the run promises of itself: the counts are the planned ones, and no bit differs from the
  // plain run's. One line; empty when the run is right.
  std::string failure() const;
};

// Told after each step, before it is compared: how many are done, the loss, and what is trained.
using step_listener = std::function<void(std::int64_t done, float loss, training& trained)>;

// Trains, then samples. Throws usage_error on bad options or a bad text before anything has run.
memory_report run_memory(device_ref device, const memory_options& options,
                         const step_listener& listen = {});

}  // namespace reprise::memory
