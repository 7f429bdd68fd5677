// `reprise bisect`: names the work of a recording at which a program's replay fails.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

void add_bisect(verb_ref root, int& exit_code);

}  // namespace reprise::app
