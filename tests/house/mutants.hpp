// Mutants: each rule that can be broken in the sources has its line in tests/mutants.txt, and each
// line its rule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/house/source.hpp"

namespace reprise::house {

// The names in REPRISE_MUTANT(name), in order.
std::vector<std::string> mutants_in(const source_file& file);

// Lines that are no `name | executable | filter | rule`, names that come twice, and names that are
// in one place only. The executable `-` says that no test is there yet.
faults mutant_faults(const std::vector<source_file>& sources, std::string_view list);

}  // namespace reprise::house
