// The kernels that grad itself launches: `bring` copies an input of a call into the static memory
// that a backward will read, and `put_gradient` delivers a gradient that an eager run has formed in
// memory of its own.
//
//   bring: from [bytes] -> to [bytes], u8; `from` may be a direct input
//   put_gradient: sum [n] -> grad [n], f32: grad = sum, or grad + sum, or stays as it is
#pragma once

#include <cstdint>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint8_t> from, write<std::uint8_t> to)> bring{"bring"};
inline constexpr kernel<void(read<float> sum, inout<float> grad, gradient_rule rule)> put_gradient{
    "put_gradient"};

void add_grad_kernels(kernel_registry& registry);

void bring_cpu(cpu_call&, read<std::uint8_t> from, write<std::uint8_t> to);
void bring_cuda(cuda_call&, read<std::uint8_t> from, write<std::uint8_t> to);
void put_gradient_cpu(cpu_call&, read<float> sum, inout<float> grad, gradient_rule rule);
void put_gradient_cuda(cuda_call&, read<float> sum, inout<float> grad, gradient_rule rule);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_grad_kernels(kernel_registry& registry);  // their checked bodies

}  // namespace reprise::checked
#endif
