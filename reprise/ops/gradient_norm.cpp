#include "reprise/ops/gradient_norm.hpp"

#include <cmath>

#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/total_sum.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_gradient_squares(std::size_t words, std::size_t squares) {
  need_elements("gradient_squares", "words", words, 2);
  need_elements("gradient_squares", "squares", squares, 1);
}

void check_gradient_norm(std::size_t words, std::size_t squares, std::size_t facts) {
  need_elements("gradient_norm", "words", words, 2);
  need_elements("gradient_norm", "squares", squares, 1);
  need_elements("gradient_norm", "facts", facts, 3);
}

void check_scale_gradients(std::size_t words, std::size_t facts) {
  need_elements("scale_gradients", "words", words, 2);
  need_elements("scale_gradients", "facts", facts, 3);
}

void gradient_squares_cpu(cpu_call& call, read<float> words, read<float> grad,
                          inout<double> squares, gradient_rule rule) {
  check_gradient_squares(words.size(), squares.size());
  const float scale = words[0];
  const auto from = grad.data();
  const double sum = total_sum<double>(call, grad.size(),
                                       [&](std::int64_t i) { return square_of(from[i], scale); });
  const double before = rule == gradient_rule::add ? static_cast<double>(squares[0]) : 0.0;
  squares[0] = before + sum;
}

void gradient_norm_cpu(cpu_call&, read<float> words, read<double> squares, write<float> facts) {
  check_gradient_norm(words.size(), squares.size(), facts.size());
  const double sum = squares[0];
  const bool is_finite = std::isfinite(sum);
  const auto norm = static_cast<float>(std::sqrt(sum));
  const float most = words[1];
  const float factor = REPRISE_MUTANT(short_gradients_are_lengthened) && most != 0.0f
                           ? most / norm
                           : clip_factor(norm, most);
  facts[0] = norm;
  facts[1] = is_finite ? 1.0f : 0.0f;
  facts[2] = is_finite ? factor : 1.0f;
}

void scale_gradients_cpu(cpu_call& call, read<float> words, read<float> facts, inout<float> grad) {
  check_scale_gradients(words.size(), facts.size());
  const auto by = gradient_scale::at(words.data(), facts.data());
  if (by.leaves) return;
  const auto at = grad.data();
  each_element(call, grad.size(), [=](std::int64_t i) { at[i] = by.scaled(at[i]); });
}

}  // namespace ops

namespace {

std::size_t squares_workspace(read<float>, read<float> grad, inout<double>, gradient_rule) {
  return ops::total_workspace<double>(grad.size());
}

}  // namespace

void add_gradient_norm(kernel_registry& registry) {
  registry.add(gradient_squares, {{device_kind::cpu, "generic", ops::gradient_squares_cpu},
                                  {.device = device_kind::cuda,
                                   .arch = "sm_80",
                                   .body = REPRISE_CUDA_BODY(ops::gradient_squares_cuda),
                                   .workspace_bytes = squares_workspace}});
  registry.add(gradient_norm,
               {{device_kind::cpu, "generic", ops::gradient_norm_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::gradient_norm_cuda)}});
  registry.add(scale_gradients,
               {{device_kind::cpu, "generic", ops::scale_gradients_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::scale_gradients_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
