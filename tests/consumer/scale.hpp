// scale: y[i] = factor * x[i], sizes equal. Rounded once, so its bits are the same on every device.
//
// In REPRISE_BODIES, since its body is compiled twice: once as it is, once checked.
#pragma once

#include <reprise/kernel/kernel.hpp>

namespace consumer::REPRISE_BODIES {

// By name: inside a namespace of one's own they would lose against the system's functions.
using reprise::read;
using reprise::write;

inline constexpr reprise::kernel<void(read<float>, write<float>, float factor)> scale{"scale"};

void add_scale(reprise::kernel_registry& registry);

void scale_cpu(reprise::cpu_call& call, read<float> x, write<float> y, float factor);
void scale_cuda(reprise::cuda_call& call, read<float> x, write<float> y, float factor);

}  // namespace consumer::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace consumer::checked {

void add_scale(reprise::kernel_registry& registry);  // its checked body

}  // namespace consumer::checked
#endif
