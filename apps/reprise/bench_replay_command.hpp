// `reprise bench replay`: what a replay adds to launching the same graph by hand.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_replay(verb_ref bench, int& exit_code);

}  // namespace reprise::app
