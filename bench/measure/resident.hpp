// How much memory of the host this process has.
#pragma once

#include <cstddef>

namespace reprise::bench {

// Bytes that are resident now, as the kernel counts them. Throws error where it does not say.
std::size_t resident_bytes();

// Gives pages that the heap keeps for later back to the kernel, where the C library can, so that
// what is resident is what is in use. For runs whose heap has not yet grown as large as it gets.
void trim_heap();

}  // namespace reprise::bench
