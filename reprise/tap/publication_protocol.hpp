// The last steps of a producer, and the first of the drain: who tells whom that the bytes are
// there.
//
//   block     writes its bytes; arrives: releases them to the device, and acquires those of all
//             that came before it
//   the last  to arrive sets the counter back for the next launch, and releases the word to the
//             system; what the others have released goes along
//   host      acquires the word; when it is the one that the plan expects, the bytes are there
//
// Over a policy of atomics: the CUDA body's are those of the card (publish_rows.cu), those of the
// exhaustive model in tests/tap are every order of stores that these fences allow.
#pragma once

#include <atomic>

#include "reprise/base/mutant.hpp"
#include "reprise/base/portable.hpp"

namespace reprise {

// What must not be weaker. Both sides, and the model, are held to this.
struct publication_orders {
  std::memory_order arrive = std::memory_order_acq_rel;   // at the scope of the device
  std::memory_order publish = std::memory_order_release;  // at the scope of the system
  std::memory_order look = std::memory_order_acquire;     // by the host
  bool publishes_to_system = true;
};
inline constexpr publication_orders published_with{};

// By one thread of each block, when the block's bytes are written.
template <class Atomics>
REPRISE_HD void publish_when_last(Atomics& on, unsigned blocks) {
  if (blocks != 1) {
    const bool is_last = on.arrive() == blocks - 1;
    if (!is_last && !REPRISE_MUTANT(publication_comes_before_the_last_block)) return;
    on.clear_arrivals();
  }
  on.publish();
}

}  // namespace reprise
