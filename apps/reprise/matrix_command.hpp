// `reprise matrix`: every cell of kernels and components, and where it could run.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the verb; the command runs it when it was chosen.
void add_matrix(verb_ref root);

}  // namespace reprise::app
