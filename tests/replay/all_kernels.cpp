// The kernels that the field's cases open their devices with.
#include "reprise/platform/platform.hpp"
#include "tests/replay/kernels.hpp"

namespace reprise::test {

kernel_registry replay_kernels() {
  kernel_registry kernels = builtin_kernels();
  add_replay_kernels(kernels);
  checked::add_replay_kernels(kernels);
  return kernels;
}

}  // namespace reprise::test
