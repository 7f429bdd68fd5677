// `reprise bench cache`: what a cache adds to the work it saves, and what filling and emptying it
// costs.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_cache(verb_ref bench, int& exit_code);

}  // namespace reprise::app
