// `reprise run denoise`: the workload's options, its sheet of images, and its report.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the workload below `run`. `exit_code` becomes 1 when a run fails a check of its own.
void add_denoise(verb_ref run, int& exit_code);

}  // namespace reprise::app
