// silu: the unit that is gated by its own logistic function (Elfwing, Uchibe and Doya,
// "Sigmoid-Weighted Linear Units", 2018). silu_grad: what reaches x of the gradient dy of what silu
// wrote.
//
//   x, y, dy, dx: any shape, the same for all
//     y  = x / (1 + e^-x)
//     dx = dy (s + x s (1 - s)),  s = 1 / (1 + e^-x)
//
// Elementwise, so row-invariant; each operation is rounded on its own and e^x is math::exp, so the
// CPU and CUDA give the same bits; y has those of swiglu where `up` is 1. At -inf silu gives NaN,
// as the formula does; the derivative has its limits, 0 and 1, at both ends.
//
// y may be x itself, dx may be x or dy. Bodies throw usage_error when the sizes differ.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/sigmoid.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, write<float> y)> silu{"silu"};
inline constexpr kernel<void(read<float> x, read<float> dy, write<float> dx)> silu_grad{
    "silu_grad"};

void add_silu(kernel_registry& registry);

namespace ops {

void silu_cpu(cpu_call&, read<float> x, write<float> y);
void silu_cuda(cuda_call&, read<float> x, write<float> y);
void silu_grad_cpu(cpu_call&, read<float> x, read<float> dy, write<float> dx);
void silu_grad_cuda(cuda_call&, read<float> x, read<float> dy, write<float> dx);

void check_silu(std::size_t x, std::size_t y);
void check_silu_grad(std::size_t x, std::size_t dy, std::size_t dx);

inline constexpr float silu_limit = 128.0f;  // beyond it s (1 - s) is 0

// One element of each; structs, so that both devices are given the same arithmetic. V is float or
// a vector.
struct silu_value {
  template <class V>
  [[gnu::always_inline]] REPRISE_HD V operator()(const V& x) const {
    const V below = math::exp<V>(math::sub(math::fill<V>(0.0f), x));
    return math::div(x, math::add(math::fill<V>(1.0f), below));
  }
};

struct silu_gradient {
  template <class V>
  [[gnu::always_inline]] REPRISE_HD V operator()(const V& x, const V& dy) const {
    const sigmoid<V> s = sigmoid_of(x);
    return math::mul(dy, math::add(s.value, math::mul(within(x, silu_limit), s.slope)));
  }
};

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
