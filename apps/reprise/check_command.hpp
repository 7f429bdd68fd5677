// `reprise check`: the kernel bodies of a device, held to those of the CPU, and what
// check_sdm_command.hpp has.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the verb and what it can check; 1 becomes the exit code when a bound is passed.
void add_check(verb_ref root, int& exit_code);

}  // namespace reprise::app
