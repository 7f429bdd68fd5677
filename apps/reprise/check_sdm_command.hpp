// `reprise check sdm`: the sparse-delta-memory op, held to case files.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds it to the verb `check`; 1 becomes the exit code when a tolerance is passed.
void add_check_sdm(verb_ref check, int& exit_code);

}  // namespace reprise::app
