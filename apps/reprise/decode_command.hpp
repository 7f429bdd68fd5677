// `reprise run decode`: the workload's options, its text as it comes, and its report.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the workload below `run`. `exit_code` becomes 1 when a run fails a check of its own.
void add_decode(verb_ref run, int& exit_code);

}  // namespace reprise::app
