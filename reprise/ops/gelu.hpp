// gelu: the Gaussian error linear unit in its tanh form (Hendrycks and Gimpel, "Gaussian Error
// Linear Units", 2016), written with the exponential: (1 + tanh(w / 2)) / 2 = 1 / (1 + e^-w).
//
//   x, out: any shape, the same for both
//     out = x / (1 + e^-w),  w = 2 sqrt(2 / pi) (x + 0.044715 x^3)
//
// Elementwise, so row-invariant; each operation is rounded on its own and e^x is math::exp, so the
// CPU and CUDA give the same bits. -inf gives NaN, as the formula does.
//
// out may be x itself. Bodies throw usage_error when the sizes differ.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, write<float> out)> gelu{"gelu"};

void add_gelu(kernel_registry& registry);

namespace ops {

void gelu_cpu(cpu_call&, read<float> x, write<float> out);
void gelu_cuda(cuda_call&, read<float> x, write<float> out);

void check_gelu(std::size_t x, std::size_t out);

inline constexpr float gelu_slope = 1.5957691f;  // 2 sqrt(2 / pi)
inline constexpr float gelu_cubic = 0.044715f;

// V is float or a vector; w is factored as slope * (x * (1 + cubic * (x * x))).
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V gelu_of(const V& x) {
  const V one = math::fill<V>(1.0f);
  const V bend = math::add(one, math::mul(math::fill<V>(gelu_cubic), math::mul(x, x)));
  const V w = math::mul(math::fill<V>(gelu_slope), math::mul(x, bend));
  return math::div(x, math::add(one, math::exp<V>(math::sub(math::fill<V>(0.0f), w))));
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
