// gelu: the Gaussian error linear unit in its tanh form (Hendrycks and Gimpel, "Gaussian Error
// Linear Units", 2016), written with the exponential: (1 + tanh(w / 2)) / 2 = 1 / (1 + e^-w).
// gelu_grad: what reaches x of the gradient dy of what gelu wrote, the derivative of that form.
//
//   x, out, dy, dx: any shape, the same for all
//     out = x / (1 + e^-w),  w = 2 sqrt(2 / pi) (x + 0.044715 x^3)
//     dx  = dy (s + x w' s (1 - s)),  s = 1 / (1 + e^-w),  w' = 2 sqrt(2 / pi) (1 + 0.134145 x^2)
//
// Elementwise, so row-invariant; each operation is rounded on its own and e^x is math::exp, so the
// CPU and CUDA give the same bits. At -inf gelu gives NaN, as the formula does; the derivative has
// its limits, 0 and 1, at both ends.
//
// out may be x itself, dx may be x or dy. Bodies throw usage_error when the sizes differ.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/sigmoid.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, write<float> out)> gelu{"gelu"};
inline constexpr kernel<void(read<float> x, read<float> dy, write<float> dx)> gelu_grad{
    "gelu_grad"};

void add_gelu(kernel_registry& registry);

namespace ops {

void gelu_cpu(cpu_call&, read<float> x, write<float> out);
void gelu_cuda(cuda_call&, read<float> x, write<float> out);

void gelu_grad_cpu(cpu_call&, read<float> x, read<float> dy, write<float> dx);
void gelu_grad_cuda(cuda_call&, read<float> x, read<float> dy, write<float> dx);

void check_gelu(std::size_t x, std::size_t out);
void check_gelu_grad(std::size_t x, std::size_t dy, std::size_t dx);

inline constexpr float gelu_slope = 1.5957691f;  // 2 sqrt(2 / pi)
inline constexpr float gelu_cubic = 0.044715f;
inline constexpr float gelu_limit = 16.0f;  // beyond it s (1 - s) is 0

// w = slope * (x * (1 + cubic * (x * x))); V is float or a vector.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V gelu_argument(const V& x) {
  const V bend =
      math::add(math::fill<V>(1.0f), math::mul(math::fill<V>(gelu_cubic), math::mul(x, x)));
  return math::mul(math::fill<V>(gelu_slope), math::mul(x, bend));
}

template <class V>
[[gnu::always_inline]] REPRISE_HD inline V gelu_of(const V& x) {
  const V below = math::exp<V>(math::sub(math::fill<V>(0.0f), gelu_argument(x)));
  return math::div(x, math::add(math::fill<V>(1.0f), below));
}

// One element of each; structs, so that both devices are given the same arithmetic.
struct gelu_value {
  template <class V>
  [[gnu::always_inline]] REPRISE_HD V operator()(const V& x) const {
    return gelu_of(x);
  }
};

struct gelu_gradient {
  template <class V>
  [[gnu::always_inline]] REPRISE_HD V operator()(const V& x, const V& dy) const {
    const sigmoid<V> s = sigmoid_of(gelu_argument(x));
    const V near = within(x, gelu_limit);
    const V bend = math::add(math::fill<V>(1.0f),
                             math::mul(math::fill<V>(3.0f * gelu_cubic), math::mul(near, near)));
    const V steep = math::mul(math::fill<V>(gelu_slope), math::mul(near, bend));
    return math::mul(dy, math::add(s.value, math::mul(steep, s.slope)));
  }
};

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
