// bring_plan: the first producer's forerunner; brings the plan words of a replay out of pinned
// memory.
//
// The host writes the plan of a step where the plans of its monitor lie, says in the slot of the
// replay which of them it is, and launches: no copy is enqueued. The kernel keeps its own count of
// replays, so each finds its slot.
//
//   slots [n], u64, pinned: replay r reads slot r % n: (index of a plan) << 32 | how many of its
//     words are brought. 0: what was brought before stays
//   plans [any, words_per_plan], u64, pinned
//   words [at least as many as are brought], u64: the plan words that producers read
//   replays [1], u64: so far; this node's own
//   consumed [1], u64, pinned: replays whose slot has been read
//
// More words than a plan or `words` has are not brought. One launch at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// What is said in a slot.
REPRISE_HD constexpr std::uint64_t plan_to_bring(std::uint64_t index, std::uint64_t words) {
  return index << 32 | words;
}
REPRISE_HD constexpr std::uint64_t index_to_bring(std::uint64_t said) {
  return said >> 32;
}
REPRISE_HD constexpr std::uint64_t words_to_bring(std::uint64_t said) {
  return said & 0xffff'ffffU;
}

inline constexpr kernel<void(read<std::uint64_t> slots, read<std::uint64_t> plans,
                             write<std::uint64_t> words, inout<std::uint64_t> replays,
                             write<std::uint64_t> consumed, std::uint64_t words_per_plan)>
    bring_plan{"bring_plan"};

void add_bring_plan(kernel_registry& registry);

void bring_plan_cpu(cpu_call&, read<std::uint64_t> slots, read<std::uint64_t> plans,
                    write<std::uint64_t> words, inout<std::uint64_t> replays,
                    write<std::uint64_t> consumed, std::uint64_t words_per_plan);
void bring_plan_cuda(cuda_call&, read<std::uint64_t> slots, read<std::uint64_t> plans,
                     write<std::uint64_t> words, inout<std::uint64_t> replays,
                     write<std::uint64_t> consumed, std::uint64_t words_per_plan);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_bring_plan(kernel_registry& registry);  // its checked body

}  // namespace reprise::checked
#endif
