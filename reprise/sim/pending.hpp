// What an adversarial device has been asked for and has not done yet: works, and what they wait
// for. Plain data; adversary.hpp runs it.
//
//   line   a stream: its last works, how far its clock has come, whether it is held
//   item   one work, node of a launch, note of a pool, or place (a beginning, a join, an end)
//   mark   where an event was recorded
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reprise/sim/clock.hpp"
#include "reprise/sim/graph.hpp"

namespace reprise::sim {

struct item;
using item_ref = std::shared_ptr<item>;

struct line {
  std::uint64_t number = 0;    // for people
  lane_place at;               // of the last work
  vector_clock clock;          // what comes before the next one
  std::vector<item_ref> tail;  // likewise, as works
  std::uint64_t earliest = 0;  // for the next one, in virtual time
  item_ref hold;               // the place that holds it; null: it is not held
  std::uint64_t slowness = 1;
  std::uint64_t rank = 0;  // for picks by rank; the seed's
};

// One launch: what its nodes point into, until the last has run.
struct launch_state {
  std::shared_ptr<executable_body> body;
  std::shared_ptr<const graph_body> holder;
  std::uint64_t number = 0;  // of the device's launches
};

// A copy from pinned memory: what it should read.
struct source_print {
  std::uint64_t hash = 0;
  std::uint64_t writers = 0;  // which works had written it
  bool taken = false;
};

struct item {
  std::uint64_t number = 0;                 // in the order in which they were asked for
  std::shared_ptr<const stored_work> what;  // null: a place, or a node that is switched off
  std::vector<stored_note> notes;           // done behind it
  const std::vector<stored_note>* node_notes = nullptr;  // likewise, of a graph's node
  std::shared_ptr<launch_state> of;                      // null: not of a launch
  std::uint64_t captured_on = 0;                         // the number of that stream
  const std::uint8_t* driven_by = nullptr;               // a word that kernels write
  std::shared_ptr<line> on;
  std::vector<std::byte> staged;  // of a copy from pageable memory
  source_print source;

  lane_place at;
  vector_clock clock;
  std::uint64_t earliest = 0;  // in virtual time
  std::uint64_t end = 0;
  std::size_t waits_for = 0;     // items that are not done
  std::vector<item_ref> before;  // what it waits for; empty when it is done
  std::vector<item_ref> then;    // those that wait for it
  bool held = false;             // a place that a test holds
  bool done = false;
};

struct mark {
  std::vector<item_ref> tail;
  vector_clock clock;
};

}  // namespace reprise::sim
