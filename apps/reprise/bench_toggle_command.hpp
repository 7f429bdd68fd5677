// `reprise bench toggle`: what it costs to switch taps from step to step.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

void add_bench_toggle(verb_ref bench, int& exit_code);

}  // namespace reprise::app
