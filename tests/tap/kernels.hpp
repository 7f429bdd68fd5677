// Kernels of this room's tests, with a body on each device. Read by bodies.cu too.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::test::REPRISE_BODIES {

// x += by, in place: what a residual stream does, so whoever taps x has to be done first.
inline constexpr kernel<void(inout<float> x, float by)> raise_all{"test_raise_all"};
void raise_all_cpu(cpu_call&, inout<float>, float);
void raise_all_cuda(cuda_call&, inout<float>, float);

// In the place of publish_rows on the CPU: the same, but for what `next_fault` says.
void add_tap_kernels(kernel_registry& kernels);

}  // namespace reprise::test::REPRISE_BODIES

namespace reprise::test {

// What becomes of one publication: the n-th from when this is set, from 0.
struct publication_fault {
  enum kind : std::uint8_t {
    none,
    lost,
    delayed,
    overwritten,
    overwritten_twice,
    other_point
  } what;
  std::uint64_t n = 0;
  std::uint64_t* late_slot = nullptr;  // a delayed word is written with the next publication
  std::uint64_t late_word = 0;
};
inline publication_fault next_fault{publication_fault::none};

}  // namespace reprise::test

#if !defined(REPRISE_CHECKED)
namespace reprise::test {

namespace checked {
void add_tap_kernels(kernel_registry& kernels);
}

// Those with their checked bodies, and all that Reprise brings.
kernel_registry tap_kernels();

}  // namespace reprise::test
#endif
