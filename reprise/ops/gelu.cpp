#include "reprise/ops/gelu.hpp"

#include <cstring>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

constexpr std::int64_t lanes = 16;

void sixteen(pointer_to<const float> x, pointer_to<float> out) {
  math::f32x16 values;
  read_elements<const float>(x, lanes, &values);
  const math::f32x16 active = gelu_of<math::f32x16>(values);
  write_elements<float>(&active, lanes, out);
}

}  // namespace

void check_gelu(std::size_t x, std::size_t out) {
  need_elements("gelu", "out", out, x);
}

void gelu_cpu(cpu_call& call, read<float> x, write<float> out) {
  check_gelu(x.size(), out.size());
  call.parallel_for(static_cast<std::int64_t>(x.size()), 8192,
                    [&](std::int64_t first, std::int64_t last) {
                      std::int64_t i = first;
                      for (; i + lanes <= last; i += lanes) sixteen(x.data() + i, out.data() + i);
                      for (; i < last; ++i) out.data()[i] = gelu_of<float>(x.data()[i]);
                    });
}

}  // namespace ops

void add_gelu(kernel_registry& registry) {
  registry.add(gelu, {{device_kind::cpu, "generic", ops::gelu_cpu},
                      {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::gelu_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
