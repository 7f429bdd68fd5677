// All kernels of the sparse-delta-memory op, for a registry.
#pragma once

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

void add_sdm(kernel_registry& registry);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {
void add_sdm(kernel_registry& registry);
}
#endif
