// `reprise bench decode`: decode steps, eager and replayed, against the bytes that a step reads.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_decode(verb_ref bench, int& exit_code);

}  // namespace reprise::app
