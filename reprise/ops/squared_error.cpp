#include "reprise/ops/squared_error.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/total_sum.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_squared_error(std::size_t x, std::size_t target, std::size_t loss) {
  need_elements("squared_error", "the target", target, x);
  need_elements("squared_error", "the loss", loss, 1);
}

void check_squared_error_grad(std::size_t x, std::size_t target, std::size_t dloss,
                              std::size_t dx) {
  need_elements("squared_error_grad", "the target", target, x);
  need_elements("squared_error_grad", "dloss", dloss, 1);
  need_elements("squared_error_grad", "dx", dx, x);
}

void squared_error_cpu(cpu_call& call, read<float> x, read<float> target, write<float> loss) {
  check_squared_error(x.size(), target.size(), loss.size());
  const auto a = x.data();
  const auto b = target.data();
  const float sum =
      total_sum(call, x.size(), [&](std::int64_t i) { return squared_off(a[i], b[i]); });
  loss[0] = x.size() == 0 ? 0.0f : sum / static_cast<float>(x.size());
}

void squared_error_grad_cpu(cpu_call& call, read<float> x, read<float> target, read<float> dloss,
                            write<float> dx) {
  check_squared_error_grad(x.size(), target.size(), dloss.size(), dx.size());
  const float scale = error_scale(dloss[0], x.size());
  each_element(call, x.size(),
               [&](std::int64_t i) { dx.data()[i] = (x.data()[i] - target.data()[i]) * scale; });
}

}  // namespace ops

namespace {

std::size_t squared_error_workspace(read<float> x, read<float>, write<float>) {
  return ops::total_workspace<float>(x.size());
}

}  // namespace

void add_squared_error(kernel_registry& registry) {
  registry.add(squared_error, {{device_kind::cpu, "generic", ops::squared_error_cpu},
                               {.device = device_kind::cuda,
                                .arch = "sm_80",
                                .body = REPRISE_CUDA_BODY(ops::squared_error_cuda),
                                .workspace_bytes = squared_error_workspace}});
  registry.add(squared_error_grad,
               {{device_kind::cpu, "generic", ops::squared_error_grad_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::squared_error_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
