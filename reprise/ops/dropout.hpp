// dropout: elements set to zero at random, the others scaled so that the mean stays (Srivastava et
// al., "Dropout", 2014). The same launch on dy is the backward: it drops what the forward dropped.
//
//   x, y: any shape, the same for both; base [2] = {seed, counter} in device memory
//   (step_scope::draws); rate in [0, 1)
//     y[i] = x[i] * (1 / (1 - rate)) where random_uniform(base, offset)[i] >= rate, else 0
//
// The factor is computed once, on the host: 1 - rate, and 1 over that, both rounded to f32. At rate
// 0 y has the bits of x. What is dropped is +0, be it a NaN. Uses uniform_draws(size) draws. A
// function of these alone, elementwise, the same bits on every device; a replay reads base anew.
//
// y may be x itself. Bodies throw usage_error when sizes do not fit or the rate is none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/random_uniform.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<std::uint64_t> base, write<float> y,
                             std::uint64_t offset, float rate)>
    dropout{"dropout"};

void add_dropout(kernel_registry& registry);

namespace ops {

void dropout_cpu(cpu_call&, read<float> x, read<std::uint64_t> base, write<float> y,
                 std::uint64_t offset, float rate);
void dropout_cuda(cuda_call&, read<float> x, read<std::uint64_t> base, write<float> y,
                  std::uint64_t offset, float rate);

// The factor of what is kept; throws usage_error when sizes do not fit or the rate is none.
float dropout_factor(std::size_t x, std::size_t base, std::size_t y, float rate);

REPRISE_HD inline float kept_or_zero(float x, std::uint32_t word, float rate, float factor) {
  return uniform_of(word) >= rate ? math::mul(x, factor) : 0.0f;
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
