// The tiny kernels of the scenarios about training, over a few floats. Each does one IEEE operation
// per element, rounded on its own, so the host gives the same bits (grad_plain.hpp). Read by
// grad_bodies.cu too.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/kernel/kernel.hpp"

namespace reprise::scenarios::REPRISE_BODIES {

// y = a b, element by element; the shorter of a and b begins anew where it ends. Either may be a
// direct input; y may be either.
inline constexpr kernel<void(read<float> a, read<float> b, write<float> y)> product{
    "scenario_product"};
void product_cpu(cpu_call&, read<float> a, read<float> b, write<float> y);
void product_cuda(cuda_call&, read<float> a, read<float> b, write<float> y);

// y = a + b, element by element.
inline constexpr kernel<void(read<float> a, read<float> b, write<float> y)> sum_of{
    "scenario_sum_of"};
void sum_of_cpu(cpu_call&, read<float> a, read<float> b, write<float> y);
void sum_of_cuda(cuda_call&, read<float> a, read<float> b, write<float> y);

// x = by x.
inline constexpr kernel<void(inout<float> x, float by)> scale{"scenario_scale"};
void scale_cpu(cpu_call&, inout<float> x, float by);
void scale_cuda(cuda_call&, inout<float> x, float by);

// The bits of x, turned over, as integers, again and again until `to` is full: what shares memory
// with them is spoiled by them, and spoils them. `to` holds whole repetitions. x may be a direct
// input.
inline constexpr kernel<void(read<float> x, write<std::int32_t> to)> stow{"scenario_stow"};
void stow_cpu(cpu_call&, read<float> x, write<std::int32_t> to);
void stow_cuda(cuda_call&, read<float> x, write<std::int32_t> to);

// What stow made the integers of; not a number where the repetitions differ.
inline constexpr kernel<void(read<std::int32_t> from, write<float> y)> unstow{"scenario_unstow"};
void unstow_cpu(cpu_call&, read<std::int32_t> from, write<float> y);
void unstow_cuda(cuda_call&, read<std::int32_t> from, write<float> y);

// kept = 2 where `uniform` is at least a half, else 0.
inline constexpr kernel<void(read<float> uniform, write<float> kept)> keep_half{
    "scenario_keep_half"};
void keep_half_cpu(cpu_call&, read<float> uniform, write<float> kept);
void keep_half_cuda(cuda_call&, read<float> uniform, write<float> kept);

// The gradient of a row of weights: for each of to's elements j the sum over rows i of
// dy[i, j] x[i, j], first row first; then put as the rule says (gradient_rule.hpp).
inline constexpr kernel<void(read<float> dy, read<float> x, read<std::int32_t> rule,
                             inout<float> to)>
    deliver_rows{"scenario_deliver_rows"};
void deliver_rows_cpu(cpu_call&, read<float> dy, read<float> x, read<std::int32_t> rule,
                      inout<float> to);
void deliver_rows_cuda(cuda_call&, read<float> dy, read<float> x, read<std::int32_t> rule,
                       inout<float> to);

// steps += 1, and running = running / 2 + the first row of x.
inline constexpr kernel<void(read<float> x, inout<std::int32_t> steps, inout<float> running)>
    count_step{"scenario_count_step"};
void count_step_cpu(cpu_call&, read<float> x, inout<std::int32_t> steps, inout<float> running);
void count_step_cuda(cuda_call&, read<float> x, inout<std::int32_t> steps, inout<float> running);

// w = w - rate grad.
inline constexpr kernel<void(read<float> grad, float rate, inout<float> w)> descend{
    "scenario_descend"};
void descend_cpu(cpu_call&, read<float> grad, float rate, inout<float> w);
void descend_cuda(cuda_call&, read<float> grad, float rate, inout<float> w);

void add_grad_kernels(kernel_registry& kernels);

REPRISE_HD inline std::int32_t stowed(float x) {
  return ~std::bit_cast<std::int32_t>(x);
}
REPRISE_HD inline float unstowed(std::int32_t bits) {
  return std::bit_cast<float>(~bits);
}

}  // namespace reprise::scenarios::REPRISE_BODIES
