// How the host learns that rows are there: what stands between the bytes of a producer and whoever
// copies them.
//
//   producer   its blocks write their bytes, and one of them the word that is to be said; no fence,
//              no counter: it holds its place on a card that the model fills as briefly as it can
//   publisher  runs behind all producers of a launch (an edge of the graph, or the order of the
//              stream), so all that they wrote comes before it; it releases each word to the
//              system, and with it what came before
//   host       acquires the word; when it is the one that the plan expects, the bytes are there
//
// A word is said once: it is taken back as it is said, so that a producer which does not run in the
// next launch says nothing there.
//
// Over a policy: the CUDA body's atomics are those of the card (publish_taken.cu), those of the
// exhaustive model in tests/tap are every order of stores that these orders allow.
#pragma once

#include <atomic>
#include <cstdint>

#include "reprise/base/mutant.hpp"
#include "reprise/base/portable.hpp"

namespace reprise {

// What must not be weaker. Both sides, and the model, are held to this.
struct publication_orders {
  std::memory_order publish = std::memory_order_release;  // at the scope of the system
  std::memory_order look = std::memory_order_acquire;     // by the host
  bool publishes_to_system = true;
};
inline constexpr publication_orders published_with{};

// By one thread of the publisher, for one producer.
template <class Publisher>
REPRISE_HD void publish_one(Publisher& on) {
  const std::uint64_t word = on.taken();
  if (word == 0) return;
  on.publish(word);
  if (!REPRISE_MUTANT(word_is_said_again)) on.take_back();
}

}  // namespace reprise
