// The kernels of the conformance suite, with a body on each device. Read by bodies.cu too.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::test::REPRISE_BODIES {

// x = 10 x + digit, for each element: the digits tell in which order works ran.
inline constexpr kernel<void(inout<std::int32_t>, std::int32_t)> append_digit{"append_digit"};
void append_digit_cpu(cpu_call&, inout<std::int32_t>, std::int32_t);
void append_digit_cuda(cuda_call&, inout<std::int32_t>, std::int32_t);

// Runs until the word is not zero, 20 seconds at most. On the CPU it is done at once, since whoever
// releases it is the caller.
inline constexpr kernel<void(read<std::int32_t>)> hold{"hold"};
void hold_cpu(cpu_call&, read<std::int32_t>);
void hold_cuda(cuda_call&, read<std::int32_t>);

// Writes `value` to its workspace and from there to out; asks for as much as out has.
inline constexpr kernel<void(write<std::int32_t>, std::int32_t)> through_workspace{
    "through_workspace"};
void through_workspace_cpu(cpu_call&, write<std::int32_t>, std::int32_t);
void through_workspace_cuda(cuda_call&, write<std::int32_t>, std::int32_t);

// Writes to an illegal address; the CPU has no body for it, since it would be the test's own end.
inline constexpr kernel<void(std::int32_t)> stray{"stray"};
void stray_cuda(cuda_call&, std::int32_t);

void add_conformance_kernels(kernel_registry& registry);

}  // namespace reprise::test::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::test {

namespace checked {
void add_conformance_kernels(kernel_registry& registry);
}

// Those with their checked bodies, and all that Reprise brings.
kernel_registry conformance_kernels();

}  // namespace reprise::test
#endif
