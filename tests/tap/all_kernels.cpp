// The kernels that the tests of this room open their devices with.
#include "reprise/platform/platform.hpp"
#include "tests/tap/kernels.hpp"

namespace reprise::test {

kernel_registry tap_kernels() {
  kernel_registry kernels = builtin_kernels();
  add_tap_kernels(kernels);
  checked::add_tap_kernels(kernels);
  return kernels;
}

}  // namespace reprise::test
