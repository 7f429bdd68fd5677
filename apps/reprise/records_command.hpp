// `reprise records DIR`: what a run directory holds, as lists, summaries, arrays and a picture.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the verb; the command runs it when it was chosen.
void add_records(verb_ref root);

}  // namespace reprise::app
