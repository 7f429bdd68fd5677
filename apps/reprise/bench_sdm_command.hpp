// `reprise bench sdm`: what the sparse-delta-memory op and its layer cost, beside their floors.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_sdm(verb_ref bench, int& exit_code);

}  // namespace reprise::app
