// The kernels that the conformance suite opens its devices with.
#include "reprise/platform/platform.hpp"
#include "tests/conformance/kernels.hpp"

namespace reprise::test {

kernel_registry conformance_kernels() {
  kernel_registry kernels = builtin_kernels();
  add_conformance_kernels(kernels);
  checked::add_conformance_kernels(kernels);
  return kernels;
}

}  // namespace reprise::test
