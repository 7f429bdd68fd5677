// Every kernel that this room has, for whoever opens a device.
#pragma once

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// Throws usage_error when the registry has one of them already.
void add_builtin_kernels(kernel_registry& registry);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

// Their checked bodies: the other compile of the same function.
void add_builtin_kernels(kernel_registry& registry);

}  // namespace reprise::checked
#endif
