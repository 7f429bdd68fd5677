#include "reprise/ops/add.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_add(std::size_t a, std::size_t b, std::size_t y) {
  need_elements("add", "b", b, a);
  need_elements("add", "y", y, a);
}

void add_cpu(cpu_call& call, read<float> a, read<float> b, write<float> y) {
  check_add(a.size(), b.size(), y.size());
  each_element(call, a.size(), [&](std::int64_t i) { y.data()[i] = a.data()[i] + b.data()[i]; });
}

}  // namespace ops

void add_add(kernel_registry& registry) {
  registry.add(add, {{device_kind::cpu, "generic", ops::add_cpu},
                     {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::add_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
