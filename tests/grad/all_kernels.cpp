// The kernels that the tests of this room open their devices with.
#include "reprise/platform/platform.hpp"
#include "scenarios/grad_kernels.hpp"
#include "tests/grad/support.hpp"

namespace reprise::scenarios::checked {
void add_grad_kernels(kernel_registry& kernels);  // the other compile of grad_kernels.cpp
}

namespace reprise::test {

kernel_registry grad_test_kernels() {
  kernel_registry kernels = builtin_kernels();
  scenarios::add_grad_kernels(kernels);
  scenarios::checked::add_grad_kernels(kernels);
  return kernels;
}

}  // namespace reprise::test
