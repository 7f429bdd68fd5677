// `reprise bench sim`: how fast the simulated GPU is, and what its checks cost the cpu.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_sim(verb_ref bench, int& exit_code);

}  // namespace reprise::app
