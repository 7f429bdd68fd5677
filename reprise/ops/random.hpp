// random_normal: made-up weights, drawn where they are needed.
//
//   out[i], any size: about normal, mean 0, standard deviation `scale`
//
// A function of (seed, stream, i, scale) alone; the same bits on the CPU and on CUDA. Philox block
// i / 2 of key `seed`, its counter's high half `stream`, gives 64 bits to each element: the sum of
// four 16-bit uniforms (Irwin-Hall), centred and scaled. No logarithm, so nothing to differ in; the
// density is within 0.02 of the normal one, and no draw lies beyond 3.47 scales.
//
// Give each tensor its own stream. No errors.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// T is float or bf16.
template <class T>
inline constexpr kernel<void(write<T>, std::uint64_t seed, std::uint64_t stream, float scale)>
    random_normal{"random_normal"};

void add_random(kernel_registry& registry);

namespace ops {

template <class T>
void random_normal_cpu(cpu_call&, write<T> out, std::uint64_t seed, std::uint64_t stream,
                       float scale);
template <class T>
void random_normal_cuda(cuda_call&, write<T> out, std::uint64_t seed, std::uint64_t stream,
                        float scale);

// The sum of four uniforms on 0 … 65535, less its mean. Exact as an f32.
REPRISE_HD inline float centred_sum(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t sum = (a & 0xffffu) + (a >> 16) + (b & 0xffffu) + (b >> 16);
  return static_cast<float>(static_cast<std::int32_t>(sum) - 131070);
}

// Its standard deviation: sqrt(4 * (65536^2 - 1) / 12).
inline constexpr float centred_sum_deviation = 37837.227f;

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
