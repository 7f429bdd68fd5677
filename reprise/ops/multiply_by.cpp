#include "reprise/ops/multiply_by.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_multiply_by(std::size_t x, std::size_t y) {
  need_elements("multiply_by", "y", y, x);
}

void multiply_by_cpu(cpu_call& call, read<float> x, write<float> y, float factor) {
  check_multiply_by(x.size(), y.size());
  each_element(call, x.size(), [&](std::int64_t i) { y.data()[i] = factor * x.data()[i]; });
}

}  // namespace ops

void add_multiply_by(kernel_registry& registry) {
  registry.add(multiply_by,
               {{device_kind::cpu, "generic", ops::multiply_by_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::multiply_by_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
