// A workload says what a step is; capturing and replaying it is the library's part.
#pragma once

#include "tests/house/source.hpp"

namespace reprise::house {

// Where a workload's source uses capture, graph, executable or event.
faults capture_api_faults(const source_file& file);

}  // namespace reprise::house
