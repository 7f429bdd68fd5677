// Kernels of this room's tests, with a body on each device. Read by bodies.cu too.
#pragma once

#include "reprise/kernel/kernel.hpp"

namespace reprise::test::REPRISE_BODIES {

// y = a x, sizes equal. Follows its input, so a direct one is read where it lies.
inline constexpr kernel<void(read<float> x, write<float> y, float a)> scale_followed{
    "test_scale_followed"};
void scale_followed_cpu(cpu_call&, read<float>, write<float>, float);
void scale_followed_cuda(cuda_call&, read<float>, write<float>, float);

// The same for those that cannot follow.
inline constexpr kernel<void(read<float> x, write<float> y, float a)> scale_here{"test_scale_here"};
void scale_here_cpu(cpu_call&, read<float>, write<float>, float);
void scale_here_cuda(cuda_call&, read<float>, write<float>, float);

// to += x, sizes equal.
inline constexpr kernel<void(read<float> x, inout<float> to)> add_to{"test_add_to"};
void add_to_cpu(cpu_call&, read<float>, inout<float>);
void add_to_cuda(cuda_call&, read<float>, inout<float>);

void add_replay_kernels(kernel_registry& kernels);

}  // namespace reprise::test::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::test {

namespace checked {
void add_replay_kernels(kernel_registry& kernels);
}

// Those with their checked bodies, and all that Reprise brings.
kernel_registry replay_kernels();

}  // namespace reprise::test
#endif
