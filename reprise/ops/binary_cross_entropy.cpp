#include "reprise/ops/binary_cross_entropy.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/binary_cross_entropy_elements.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/total_sum.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_binary_cross_entropy(std::size_t logits, std::size_t targets, std::size_t loss) {
  need_elements("binary_cross_entropy", "targets", targets, logits);
  need_elements("binary_cross_entropy", "the loss", loss, 1);
}

void check_binary_cross_entropy_grad(std::size_t logits, std::size_t targets, std::size_t dloss,
                                     std::size_t dlogits) {
  constexpr const char* op = "binary_cross_entropy_grad";
  need_elements(op, "targets", targets, logits);
  need_elements(op, "dloss", dloss, 1);
  need_elements(op, "dlogits", dlogits, logits);
}

void check_binary_cross_entropy_target_grad(std::size_t logits, std::size_t dloss,
                                            std::size_t dtargets) {
  constexpr const char* op = "binary_cross_entropy_target_grad";
  need_elements(op, "dloss", dloss, 1);
  need_elements(op, "dtargets", dtargets, logits);
}

void binary_cross_entropy_cpu(cpu_call& call, read<float> logits, read<float> targets,
                              write<float> loss) {
  check_binary_cross_entropy(logits.size(), targets.size(), loss.size());
  const auto x = logits.data();
  const auto t = targets.data();
  const float sum =
      total_sum(call, logits.size(), [&](std::int64_t i) { return logit_loss(x[i], t[i]); });
  loss[0] = logits.size() == 0 ? 0.0f : sum / static_cast<float>(logits.size());
}

void binary_cross_entropy_grad_cpu(cpu_call& call, read<float> logits, read<float> targets,
                                   read<float> dloss, write<float> dlogits) {
  check_binary_cross_entropy_grad(logits.size(), targets.size(), dloss.size(), dlogits.size());
  map_elements(call, logit_slope{share_of(dloss[0], logits.size())}, dlogits, logits, targets);
}

void binary_cross_entropy_target_grad_cpu(cpu_call& call, read<float> logits, read<float> dloss,
                                          write<float> dtargets) {
  check_binary_cross_entropy_target_grad(logits.size(), dloss.size(), dtargets.size());
  const float scale = share_of(dloss[0], logits.size());
  const auto x = logits.data();
  const auto to = dtargets.data();
  each_element(call, logits.size(), [=](std::int64_t i) { to[i] = target_slope(x[i], scale); });
}

}  // namespace ops

namespace {

std::size_t total_loss_workspace(read<float> logits, read<float>, write<float>) {
  return ops::total_workspace<float>(logits.size());
}

}  // namespace

void add_binary_cross_entropy(kernel_registry& registry) {
  registry.add(binary_cross_entropy, {{device_kind::cpu, "generic", ops::binary_cross_entropy_cpu},
                                      {.device = device_kind::cuda,
                                       .arch = "sm_80",
                                       .body = REPRISE_CUDA_BODY(ops::binary_cross_entropy_cuda),
                                       .workspace_bytes = total_loss_workspace}});
  registry.add(
      binary_cross_entropy_grad,
      {{device_kind::cpu, "generic", ops::binary_cross_entropy_grad_cpu},
       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::binary_cross_entropy_grad_cuda)}});
  registry.add(binary_cross_entropy_target_grad,
               {{device_kind::cpu, "generic", ops::binary_cross_entropy_target_grad_cpu},
                {device_kind::cuda, "sm_80",
                 REPRISE_CUDA_BODY(ops::binary_cross_entropy_target_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
