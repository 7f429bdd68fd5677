// The trial device: a kind of its own with few bodies, some only for an old arch, which proves
// without a GPU what happens across kinds of devices. Its bodies are written for it alone.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/sim/device.hpp"
#include "tests/kernel/kernels.hpp"

namespace reprise::test {

inline device_traits trial_traits(std::vector<std::string> chain = {"t3", "t2", "t1"}) {
  device_traits traits;
  traits.name = "trial:0";
  traits.bodies = device_kind::trial;
  traits.arch_chain = std::move(chain);
  return traits;
}

inline device open_trial(const kernel_registry& kernels,
                         const std::vector<variant_wish>& wishes = {},
                         device_traits traits = trial_traits()) {
  auto implementation = sim::open_in_order(std::move(traits));
  auto table = resolve_kernels(kernels, implementation->traits(), wishes);
  return device{std::move(implementation), std::move(table)};
}

// From the last element to the first, unlike the CPU's, and with the same values.
inline void raise_backwards(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = x.size(); i-- > 0;) x[i] = x[i] + by;
}

// The test kernels with their CPU bodies, and a trial body of one: raise_by<float>, from t1 on.
inline kernel_registry trial_kernels() {
  kernel_registry kernels = test_kernels();
  kernels.add(raise_by<float>, {{device_kind::trial, "t1", raise_backwards}});
  return kernels;
}

}  // namespace reprise::test
