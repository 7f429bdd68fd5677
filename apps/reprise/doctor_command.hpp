// `reprise doctor`: what is here, and what would be used.
#pragma once

#include <string>

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the verb; the command runs it when it was chosen.
void add_doctor(verb_ref root);

}  // namespace reprise::app
