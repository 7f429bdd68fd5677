// swiglu: the gate of a gated feed-forward layer (Shazeer, "GLU Variants Improve Transformer",
// 2020).
//
//   gate, up, out: any shape, the same for all three
//     out = (gate / (1 + e^-gate)) * up
//
// Elementwise, so row-invariant; each operation is rounded on its own and e^x is math::exp, so the
// CPU and CUDA give the same bits. A gate of -inf gives NaN, as the formula does.
//
// out may be gate or up itself. Bodies throw usage_error when the sizes differ.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// A is float or bf16.
template <class A>
inline constexpr kernel<void(read<A>, read<A>, write<A>)> swiglu{"swiglu"};

void add_swiglu(kernel_registry& registry);

namespace ops {

template <class A>
void swiglu_cpu(cpu_call&, read<A> gate, read<A> up, write<A> out);
template <class A>
void swiglu_cuda(cuda_call&, read<A> gate, read<A> up, write<A> out);

void check_swiglu(std::size_t gate, std::size_t up, std::size_t out);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
