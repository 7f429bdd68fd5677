// The checks of sizes that ops over rows share. Called by bodies on the host, before any work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/portable.hpp"

namespace reprise::REPRISE_BODIES::ops {

// How many rows of `width` elements there are. Throws usage_error, naming op and argument, unless
// width is at least 1 and divides.
std::int64_t whole_rows(const char* op, const char* argument, std::size_t elements,
                        std::int64_t width);

// Throws usage_error, naming op and argument, unless there are exactly `need` elements.
void need_elements(const char* op, const char* argument, std::size_t elements, std::size_t need);

}  // namespace reprise::REPRISE_BODIES::ops
