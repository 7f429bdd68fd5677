// tap_layer: what a layer of a model is to a tap. It reads its weights, which takes its time, and
// the residual, and writes the next residual elsewhere.
//
//   weights: i32, whole groups of 16 bytes, all words equal; in, out: f32, as many elements;
//   out = in + by + what the weights come to, which is 0, as no compiler knows
//
// The CUDA body fills an H200 (8 blocks of 256 threads on each of its 132 multiprocessors), so that
// a producer has to share the card with it. Bits are the same on every device while values are
// whole numbers below 2^24. Read by layer.cu too.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::bench::REPRISE_BODIES {

inline constexpr kernel<void(read<std::int32_t> weights, read<float> in, write<float> out,
                             float by)>
    tap_layer{"bench_tap_layer"};

void tap_layer_cpu(cpu_call&, read<std::int32_t> weights, read<float> in, write<float> out,
                   float by);
void tap_layer_cuda(cuda_call&, read<std::int32_t> weights, read<float> in, write<float> out,
                    float by);

void add_tap_layer(kernel_registry& kernels);

}  // namespace reprise::bench::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::bench {

namespace checked {
void add_tap_layer(kernel_registry& kernels);  // its checked body
}

// Both: what the device that is measured has to be opened with, beside what Reprise brings.
inline void add_tap_kernels(kernel_registry& kernels) {
  add_tap_layer(kernels);
  checked::add_tap_layer(kernels);
}

}  // namespace reprise::bench
#endif
