// `reprise bisect`: names the work of a recording at which a program's replay fails.
#pragma once

#include <string>
#include <vector>

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// `behind_mark`: the words of the line behind its first `--`, by the time the verb runs.
void add_bisect(verb_ref root, const std::vector<std::string>& behind_mark, int& exit_code);

}  // namespace reprise::app
