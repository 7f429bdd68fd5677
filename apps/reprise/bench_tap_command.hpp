// `reprise bench tap`: what it costs to look inside a step while it is replayed.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

void add_bench_tap(verb_ref bench, int& exit_code);

}  // namespace reprise::app
