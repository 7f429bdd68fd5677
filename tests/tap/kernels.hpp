// Kernels of this room's tests, with a body on each device. Read by bodies.cu too.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::test::REPRISE_BODIES {

// x += by, in place: what a residual stream does, so whoever taps x has to be done first.
inline constexpr kernel<void(inout<float> x, float by)> raise_all{"test_raise_all"};
void raise_all_cpu(cpu_call&, inout<float>, float);
void raise_all_cuda(cuda_call&, inout<float>, float);

// In the place of take_rows and publish_taken on the CPU: the same, but for what `next_fault` says.
void add_tap_kernels(kernel_registry& kernels);

}  // namespace reprise::test::REPRISE_BODIES

namespace reprise::test {

// What becomes of one publication: the n-th from when this is set, from 0.
struct publication_fault {
  enum kind : std::uint8_t {
    none,
    lost,
    delayed,            // its word is written with a later publication, the `by`-th from here
    overwritten,        // by the next lap's
    overwritten_twice,  // by that of the lap behind
    other_point,        // the word names another
    fewer_rows,         // the word says one less
    other_replay,       // the marker names another
    marker_of_other_point,
    run_away,  // the producer goes on: `by` publications more than there was room for
  } what;
  std::uint64_t n = 0;
  std::uint64_t by = 1;
  std::uint64_t taken = 0, said = 0;  // since: rows, and words
  // Of what is delayed.
  std::uint64_t* late_slot = nullptr;
  std::uint64_t late_word = 0;
  std::uint64_t late_in = 0;
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
