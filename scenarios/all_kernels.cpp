// The kernels that devices are opened with to run scenarios.
#include "reprise/platform/platform.hpp"
#include "scenarios/kernels.hpp"
#include "scenarios/scenario.hpp"

namespace reprise::scenarios {

namespace checked {
void add_scenario_kernels(kernel_registry& kernels);  // the other compile of kernels.cpp
}

kernel_registry scenario_kernels() {
  kernel_registry kernels = builtin_kernels();
  add_scenario_kernels(kernels);
  checked::add_scenario_kernels(kernels);
  return kernels;
}

}  // namespace reprise::scenarios
