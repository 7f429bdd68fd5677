// What processor this is, and which rungs of the CPU chain it runs.
#pragma once

#include <string>
#include <vector>

namespace reprise::sim {

// Best first; "generic" is always last.
std::vector<std::string> processor_arch_chain();
// As the system names it, or its architecture where it says nothing.
std::string processor_model();
// Hardware threads this process may use, at least 1.
int processor_threads();

}  // namespace reprise::sim
