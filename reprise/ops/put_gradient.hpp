// put_gradient: a finished sum into a gradient buffer, for a backward that runs eagerly and forms
// the sum in memory of its own.
//
//   rule write: grad[i] = sum[i];   add: grad[i] = grad[i] + sum[i];   leave: nothing is touched
//
// What a recorded backward does by itself, with the rule in a word of device memory
// (ops/linear.hpp), and the same bits. Elementwise; the CPU and CUDA agree.
//
// sum and grad do not overlap. Bodies throw usage_error when they differ in size.
#pragma once

#include <cstddef>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> sum, inout<float> grad, gradient_rule rule)> put_gradient{
    "put_gradient"};

void add_put_gradient(kernel_registry& registry);

namespace ops {

void put_gradient_cpu(cpu_call&, read<float> sum, inout<float> grad, gradient_rule rule);
void put_gradient_cuda(cuda_call&, read<float> sum, inout<float> grad, gradient_rule rule);

void check_put_gradient(std::size_t sum, std::size_t grad);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
