// The order in which norms, losses and gradients of weights add, the same on the CPU and on CUDA:
// a sum in slots. Element l is added, in increasing l, to slot l mod Slots, and each slot begins at
// 0; then slot s takes slot s + Slots / 2, then s + Slots / 4, and so on to the first.
//
// A slot is a lane of a vector here and a thread in slot_sum.cuh, so both sides add many at a time,
// and no order depends on how many there are. Slots without an element hold zeros, which change no
// sum.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

inline constexpr int row_slots = 32;      // of a row: a warp has as many lanes
inline constexpr int total_slots = 1024;  // of a total: a block has at most as many threads

// The second half of the order; Slots is a power of two. Spoils the slots.
template <int Slots, class T>
REPRISE_HD inline T fold_slots(T* slots) {
  if constexpr (Slots == 1) {
    return slots[0];
  } else {
    constexpr int half = Slots / 2;
    for (int s = 0; s < half; ++s) slots[s] = math::add(slots[s], slots[s + half]);
    return fold_slots<half>(slots);
  }
}

// The sum of term(l), a T, for l below `count`, on the CPU.
template <int Slots, class T = float, class Term>
T slot_sum(std::int64_t count, Term&& term) {
  T slots[Slots] = {};
  for (std::int64_t begin = 0; begin < count; begin += Slots) {
    const std::int64_t here = std::min<std::int64_t>(count - begin, Slots);
    for (std::int64_t s = 0; s < here; ++s) slots[s] += term(begin + s);
  }
  return fold_slots<Slots>(slots);
}

}  // namespace reprise::REPRISE_BODIES::ops
