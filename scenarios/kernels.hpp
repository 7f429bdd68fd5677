// The tiny kernels of the scenarios, over 32-bit integers so that results are exact. Read by
// bodies.cu too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::scenarios::REPRISE_BODIES {

// x = 10 x + digit, for each element: the digits tell in which order works ran.
inline constexpr kernel<void(inout<std::int32_t> x, std::int32_t digit)> append_digit{
    "scenario_append_digit"};
void append_digit_cpu(cpu_call&, inout<std::int32_t> x, std::int32_t digit);
void append_digit_cuda(cuda_call&, inout<std::int32_t> x, std::int32_t digit);

// to += from, element by element; `from` of one element goes to each.
inline constexpr kernel<void(read<std::int32_t> from, inout<std::int32_t> to)> add{"scenario_add"};
void add_cpu(cpu_call&, read<std::int32_t> from, inout<std::int32_t> to);
void add_cuda(cuda_call&, read<std::int32_t> from, inout<std::int32_t> to);

// y = x factor[0]; x may be a direct input.
inline constexpr kernel<void(read<std::int32_t> x, read<std::int32_t> factor,
                             write<std::int32_t> y)>
    times{"scenario_times"};
void times_cpu(cpu_call&, read<std::int32_t> x, read<std::int32_t> factor, write<std::int32_t> y);
void times_cuda(cuda_call&, read<std::int32_t> x, read<std::int32_t> factor, write<std::int32_t> y);

// sum[0] = the sum of x, by way of a workspace as large as x.
inline constexpr kernel<void(read<std::int32_t> x, write<std::int32_t> sum)> sum_up{
    "scenario_sum_up"};
void sum_up_cpu(cpu_call&, read<std::int32_t> x, write<std::int32_t> sum);
void sum_up_cuda(cuda_call&, read<std::int32_t> x, write<std::int32_t> sum);

// A kernel that declares less than it touches: as append_digit, and of the element behind its view
// as well. The CPU alone has a body for it.
inline constexpr kernel<void(inout<std::int32_t> x, std::int32_t digit)> append_past{
    "scenario_append_past"};
void append_past_cpu(cpu_call&, inout<std::int32_t> x, std::int32_t digit);

void add_scenario_kernels(kernel_registry& kernels);

}  // namespace reprise::scenarios::REPRISE_BODIES
