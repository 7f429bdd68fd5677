// How much memory of the host this process has.
#pragma once

#include <cstddef>

namespace reprise::bench {

// Bytes that are resident now, as the kernel counts them. Throws error where it does not say.
std::size_t resident_bytes();

}  // namespace reprise::bench
