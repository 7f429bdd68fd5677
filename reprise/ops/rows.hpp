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

// The second axis of a grid has no more blocks: it bounds a size that a kernel cuts along it.
inline constexpr std::int64_t most_blocks_across = 65'535;

// Throws usage_error, naming op and size, when it is over `most`; on every device, so that what one
// takes the others take.
void need_at_most(const char* op, const char* size, std::int64_t is, std::int64_t most);

}  // namespace reprise::REPRISE_BODIES::ops
