// random_uniform: numbers from a counter that the host owns, for dropout and sampling in steps.
//
//   out[i], any size: uniform on [0, 1), a multiple of 2^-24
//
// With base [2] = {seed, counter} in device memory (step_scope::draws): word i % 4 of Philox block
// counter + offset + i / 4 of key `seed`, its upper 24 bits. A function of these alone, the same
// bits on every device; a replay reads base anew. Uses uniform_draws(size) draws.
//
// Bodies throw usage_error when base has not two elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/philox.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint64_t> base, write<float> out, std::uint64_t offset)>
    random_uniform{"random_uniform"};

constexpr std::uint64_t uniform_draws(std::size_t count) {
  return (count + 3) / 4;
}

void add_random_uniform(kernel_registry& registry);

namespace ops {

void random_uniform_cpu(cpu_call&, read<std::uint64_t> base, write<float> out,
                        std::uint64_t offset);
void random_uniform_cuda(cuda_call&, read<std::uint64_t> base, write<float> out,
                         std::uint64_t offset);

// Exact: 24 bits fit an f32.
REPRISE_HD inline float uniform_of(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

// Throws usage_error when base has not two elements.
void check_random_uniform(std::size_t base);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
