// A source that no CMakeLists.txt names is not built, and a room that a CMakeLists.txt asks for is
// an arrow too.
#pragma once

#include "tests/house/source.hpp"

namespace reprise::house {

// `file`, a .cpp or .cu, must be named in the CMakeLists.txt of its own folder.
faults unlisted_faults(const source_file& file, std::string_view cmake_lists);

// `room`'s CMakeLists.txt: what stands after NEEDS must lie along the arrows.
faults needs_faults(std::string_view room, std::string_view cmake_lists);

}  // namespace reprise::house
