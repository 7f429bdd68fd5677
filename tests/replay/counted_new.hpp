// Replaces operator new of the executable that is linked with it, and counts.
#pragma once

#include <cstdint>

namespace reprise::test {

// How often this thread has called any form of operator new.
std::uint64_t allocations_of_this_thread();

}  // namespace reprise::test
