// What is done to finished gradients before an update: gradient_squares and gradient_norm find the
// norm of all of them, over however many spans they lie in, scale_gradients undoes a loss's scale
// and clips that norm (Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural
// networks", 2013, algorithm 1).
//
//   words [2] = {scale, most}, grad: any shape, squares [1] in f64, facts [3] = {norm, finite,
//   factor}; g[i] = grad[i] / scale, f32, and its square in f64:
//     gradient_squares   squares = sum g[i]^2, or under the rule `add` squares + that sum
//     gradient_norm      norm = sqrt(squares), finite = 1 where squares is finite, else 0;
//                        factor = min(1, most / (norm + 1e-6)), or 1 where most is 0
//     scale_gradients    grad[i] = (grad[i] / scale) * factor where finite is 1, else grad is left
//                        as it is
//
// A square of an f32 is exact in f64, and no sum of them overflows: `finite` says whether each g[i]
// is a number and finite, and where it is 0 the norm is infinite or no number. (One that f32 cannot
// hold is infinite too.) Words and facts lie in device memory, so that a recorded step reads those
// of its run. Where scale and factor are 1, scale_gradients touches no gradient.
//
// The same bits on the CPU and on CUDA: every operation is rounded on its own, and the sum has one
// order, fixed by the number of elements alone (total_sum.hpp).
//
// Nothing overlaps. Bodies throw usage_error when sizes do not fit. On CUDA gradient_squares needs
// a workspace, eight bytes for each 4096 elements.
#pragma once

#include <cstddef>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> words, read<float> grad, inout<double> squares,
                             gradient_rule rule)>
    gradient_squares{"gradient_squares"};
inline constexpr kernel<void(read<float> words, read<double> squares, write<float> facts)>
    gradient_norm{"gradient_norm"};
inline constexpr kernel<void(read<float> words, read<float> facts, inout<float> grad)>
    scale_gradients{"scale_gradients"};

void add_gradient_norm(kernel_registry& registry);

namespace ops {

void gradient_squares_cpu(cpu_call&, read<float> words, read<float> grad, inout<double> squares,
                          gradient_rule rule);
void gradient_squares_cuda(cuda_call&, read<float> words, read<float> grad, inout<double> squares,
                           gradient_rule rule);
void gradient_norm_cpu(cpu_call&, read<float> words, read<double> squares, write<float> facts);
void gradient_norm_cuda(cuda_call&, read<float> words, read<double> squares, write<float> facts);
void scale_gradients_cpu(cpu_call&, read<float> words, read<float> facts, inout<float> grad);
void scale_gradients_cuda(cuda_call&, read<float> words, read<float> facts, inout<float> grad);

void check_gradient_squares(std::size_t words, std::size_t squares);
void check_gradient_norm(std::size_t words, std::size_t squares, std::size_t facts);
void check_scale_gradients(std::size_t words, std::size_t facts);

REPRISE_HD inline double square_of(float grad, float scale) {
  const double g = math::div(grad, scale);
  return math::mul(g, g);
}

// Of a finite norm.
REPRISE_HD inline float clip_factor(float norm, float most) {
  const float factor = math::div(most, math::add(norm, 1e-6f));
  return most == 0.0f || factor > 1.0f ? 1.0f : factor;
}

// How a span of gradients is scaled: P points to floats, checked or not.
struct gradient_scale {
  float scale, factor;
  bool leaves;  // all as it is

  template <class P>
  REPRISE_HD static gradient_scale at(P words, P facts) {
    const float scale = words[0];
    const float factor = facts[2];
    const float finite = facts[1];
    return {scale, factor, finite != 1.0f || (scale == 1.0f && factor == 1.0f)};
  }
  REPRISE_HD float scaled(float grad) const { return math::mul(math::div(grad, scale), factor); }
};

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
