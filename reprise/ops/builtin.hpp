// Every kernel that this room has, for whoever opens a device.
#pragma once

namespace reprise {

class kernel_registry;

// Throws usage_error when the registry has one of them already.
void add_builtin_kernels(kernel_registry& registry);

}  // namespace reprise
