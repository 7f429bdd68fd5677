// rope: rotary position embedding, in the rotate-half form (Su et al., "RoFormer", 2021; halves as
// in GPT-NeoX and Llama checkpoints).
//
//   x [m, heads, head_dim], positions [m], inverse_frequencies [head_dim / 2], in radians per
//   position For each head and i < head_dim / 2, with u = x[.., i] and v = x[.., i + head_dim / 2]:
//     angle = positions[row] * inverse_frequencies[i], rounded to f32
//     x[.., i] = u cos(angle) - v sin(angle);   x[.., i + head_dim / 2] = v cos(angle) + u
//     sin(angle)
//
// Row-invariant, and the same bits on the CPU and on CUDA: math::sincos, and every operation
// rounded on its own. Angles beyond 1e6 rad lose accuracy.
//
// Bodies throw usage_error when sizes do not fit, or head_dim is odd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// A is float or bf16.
template <class A>
inline constexpr kernel<void(inout<A>, read<std::int32_t> positions,
                             read<float> inverse_frequencies, std::int64_t heads,
                             std::int64_t head_dim)>
    rope{"rope"};

void add_rope(kernel_registry& registry);

// theta^(-2i / head_dim) for i < head_dim / 2: computed in double, rounded once.
std::vector<float> rope_inverse_frequencies(std::int64_t head_dim, double theta);

namespace ops {

template <class A>
void rope_cpu(cpu_call&, inout<A> x, read<std::int32_t> positions, read<float> inverse_frequencies,
              std::int64_t heads, std::int64_t head_dim);
template <class A>
void rope_cuda(cuda_call&, inout<A> x, read<std::int32_t> positions,
               read<float> inverse_frequencies, std::int64_t heads, std::int64_t head_dim);

void check_rope(std::size_t x, std::size_t positions, std::size_t inverse_frequencies,
                std::int64_t heads, std::int64_t head_dim);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
