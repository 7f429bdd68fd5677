// How often each op of a run is recorded, replayed and run eagerly: as it counted, and as the
// scenario says that it must be, worked out of the options alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/grad/counts.hpp"
#include "reprise/replay/cache_report.hpp"
#include "workloads/memory/options.hpp"

namespace reprise::memory {

struct op_counts {
  std::string op;
  grad_counts counts;
};

struct run_counts {
  std::vector<op_counts> ops;  // embedding, the layers of the network in order, loss
  step_counts updates;         // of the optimizer
  step_counts samples;         // bytes of the sample, the prompt's too
};

// Of a run that records, or of the plain one.
run_counts planned_counts(const memory_options& options, bool records);

// The first counter that differs, with the op it is of; empty where none does.
std::string difference(const run_counts& ran, const run_counts& planned);

}  // namespace reprise::memory
