// `reprise run train denoiser`: makes the model of the workload `denoise` again from a seed.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the verb below `train`.
void add_train_denoiser(verb_ref train);

}  // namespace reprise::app
