// `reprise sim`: scenarios on the simulated GPU, under one seed after the other.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the verb. `exit_code` becomes 1 when a scenario failed or a planted bug was not found.
void add_sim(verb_ref root, int& exit_code);

}  // namespace reprise::app
