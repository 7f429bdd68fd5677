#include "reprise/ops/narrowing.hpp"

#include <cstdint>

#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_narrow_to_bf16(std::size_t x, std::size_t out) {
  need_elements("narrow_to_bf16", "out", out, x);
}

void narrow_to_bf16_cpu(cpu_call& call, read<float> x, write<bf16> out) {
  check_narrow_to_bf16(x.size(), out.size());
  const auto from = x.data();
  const auto to = out.data();
  each_element(call, x.size(), [=](std::int64_t i) { to[i] = narrow<bf16>(from[i]); });
}

}  // namespace ops

void add_narrowing(kernel_registry& registry) {
  registry.add(narrow_to_bf16,
               {{device_kind::cpu, "generic", ops::narrow_to_bf16_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::narrow_to_bf16_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
