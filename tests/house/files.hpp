// What every source file holds to: its size, how it opens, and what it must not say.
#pragma once

#include "tests/house/source.hpp"

namespace reprise::house {

inline constexpr int most_lines = 399;

faults file_faults(const source_file& file);

}  // namespace reprise::house
