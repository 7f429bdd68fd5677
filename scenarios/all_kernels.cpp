// The kernels that devices are opened with to run scenarios.
#include "reprise/platform/platform.hpp"
#include "scenarios/grad_kernels.hpp"
#include "scenarios/kernels.hpp"
#include "scenarios/scenario.hpp"

namespace reprise::scenarios {

namespace checked {
void add_scenario_kernels(kernel_registry& kernels);  // the other compile of kernels.cpp
void add_grad_kernels(kernel_registry& kernels);      // and of grad_kernels.cpp
}  // namespace checked

kernel_registry scenario_kernels() {
  kernel_registry kernels = builtin_kernels();
  add_scenario_kernels(kernels);
  checked::add_scenario_kernels(kernels);
  add_grad_kernels(kernels);
  checked::add_grad_kernels(kernels);
  return kernels;
}

}  // namespace reprise::scenarios
