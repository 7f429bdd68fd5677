// What a backward does to the gradient buffer of a parameter. Kernels read it from a device word,
// so that one recording serves all three.
#pragma once

#include <cstdint>

namespace reprise {

// `leave`: the buffer is neither read nor written.
enum class gradient_rule : std::int32_t { write, add, leave };

}  // namespace reprise
