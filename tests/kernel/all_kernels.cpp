// The registry that the tests of launching open their devices with.
#include "reprise/kernel/registry.hpp"
#include "tests/kernel/kernels.hpp"

namespace reprise::test {

kernel_registry test_kernels() {
  kernel_registry kernels;
  add_test_kernels(kernels);
  checked::add_test_kernels(kernels);
  return kernels;
}

}  // namespace reprise::test
