// How often each part of a run is recorded, replayed and run eagerly: as it counted, and as the
// schedule says that it must be, worked out of the options alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reprise/replay/cache_report.hpp"
#include "reprise/train/part.hpp"
#include "workloads/train/options.hpp"
#include "workloads/train/schedule.hpp"

namespace reprise::train {

struct counted_part {
  std::string part;
  part_counts counts;
  bool is_one_step = false;  // the loss: counted by runs, not by forwards and backwards
};

struct run_counts {
  std::vector<counted_part> parts;  // trunk, class, mask, loss
  step_counts updates;              // finishing gradients, the optimizer, the average
};

// A run that is over.
struct scheduled_run {
  std::span<const epoch> epochs;
  std::int64_t validated = 0;        // images, after each epoch
  const std::vector<bool>& applied;  // by window: whether it was not skipped
  bool records = true;               // false: the plain run
};

run_counts planned_counts(const train_options& options, const scheduled_run& run);

// The first counter that differs, with the part it is of; empty where none does.
std::string difference(const run_counts& ran, const run_counts& planned);

}  // namespace reprise::train
