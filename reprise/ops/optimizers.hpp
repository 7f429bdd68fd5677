// The updates of a training step, on one parameter each: sgd, by its gradient, or by a velocity
// that decays (Polyak, "Some methods of speeding up the convergence of iteration methods", 1964);
// adamw, by moments of its gradient, with decay apart from them (Loshchilov and Hutter, "Decoupled
// Weight Decay Regularization", 2019).
//
//   grad, weight, and velocity or m and v: any shape, the same for all
//
//   sgd    words [3] = {rate, momentum, weight_decay}; velocity may be empty, then momentum is not
//          used
//     g = grad + weight_decay * weight
//     velocity = momentum * velocity + g,  weight = weight - rate * velocity;  or
//                                          weight = weight - rate * g
//   adamw  words [7] = {rate, beta1, beta2, eps, weight_decay, 1 - beta1^t, 1 - beta2^t}, at the
//          t-th step, counted from 1; m and v begin as zeros
//     m = beta1 * m + (1 - beta1) * grad
//     v = beta2 * v + (1 - beta2) * (grad * grad)
//     weight = (weight - (rate * weight_decay) * weight)
//              - rate * ((m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps))
//
// The words change from step to step: they lie in device memory, so that a recorded step reads
// those of its run. 1 - beta1 and 1 - beta2 are f32, of betas that are f32.
//
// Elementwise; each operation is rounded on its own, as the parentheses say, so the CPU and CUDA
// give the same bits. Nothing overlaps. Bodies throw usage_error when sizes do not fit.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> words, read<float> grad, inout<float> velocity,
                             inout<float> weight)>
    sgd{"sgd"};
inline constexpr kernel<void(read<float> words, read<float> grad, inout<float> m, inout<float> v,
                             inout<float> weight)>
    adamw{"adamw"};

void add_optimizers(kernel_registry& registry);

namespace ops {

void sgd_cpu(cpu_call&, read<float> words, read<float> grad, inout<float> velocity,
             inout<float> weight);
void sgd_cuda(cuda_call&, read<float> words, read<float> grad, inout<float> velocity,
              inout<float> weight);
void adamw_cpu(cpu_call&, read<float> words, read<float> grad, inout<float> m, inout<float> v,
               inout<float> weight);
void adamw_cuda(cuda_call&, read<float> words, read<float> grad, inout<float> m, inout<float> v,
                inout<float> weight);

void check_sgd(std::size_t words, std::size_t grad, std::size_t velocity, std::size_t weight);
void check_adamw(std::size_t words, std::size_t grad, std::size_t m, std::size_t v,
                 std::size_t weight);

// One element of each, on either device: P points to floats, checked or not.
struct sgd_words {
  float rate, momentum, weight_decay;

  template <class P>
  REPRISE_HD static sgd_words at(P words) {
    return {words[0], words[1], words[2]};
  }
  REPRISE_HD float decayed(float grad, float weight) const {
    return math::add(grad, math::mul(weight_decay, weight));
  }
  REPRISE_HD float moved(float weight, float along) const {
    return math::sub(weight, math::mul(rate, along));
  }
  REPRISE_HD float faster(float velocity, float g) const {
    return math::add(math::mul(momentum, velocity), g);
  }
};

struct adamw_words {
  float rate, beta1, beta2, eps, weight_decay, bias1, bias2;

  template <class P>
  REPRISE_HD static adamw_words at(P words) {
    return {words[0], words[1], words[2], words[3], words[4], words[5], words[6]};
  }
  // A moment that has seen one more value.
  REPRISE_HD static float seen(float beta, float moment, float value) {
    return math::add(math::mul(beta, moment), math::mul(math::sub(1.0f, beta), value));
  }
  REPRISE_HD float moved(float weight, float m, float v) const {
    const float decayed = math::sub(weight, math::mul(math::mul(rate, weight_decay), weight));
    const float size = math::add(math::sqrt(math::div(v, bias2)), eps);
    return math::sub(decayed, math::mul(rate, math::div(math::div(m, bias1), size)));
  }
};

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
