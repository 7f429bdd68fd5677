// The words of device mode for one graph: handles of its nodes and whether each is on, in device
// memory that a planner kernel of the graph reads at each launch (ops/switch_nodes.hpp).
//
// Owned by the graph. Written in stream order ahead of a launch: from pageable memory, since the
// device stages such copies, and no pinned slot has to wait for its replay.
//
// For this room's .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/toggle/capture_stamp.hpp"

namespace reprise {

class planner_words {
 public:
  // Memory that no work has used, so every stream may; `home` is that of the session.
  planner_words(pool& memory, std::size_t works, stream_ref home)
      : handles_{block::fresh(memory, works * sizeof(std::uint64_t), home)},
        on_{block::fresh(memory, works, home)},
        works_{works} {}

  std::size_t works() const { return works_; }
  view<std::uint64_t> handles() const {
    return {reinterpret_cast<std::uint64_t*>(handles_.data()), works_};
  }
  view<std::uint8_t> on() const { return {reinterpret_cast<std::uint8_t*>(on_.data()), works_}; }

 private:
  block handles_;
  block on_;
  std::size_t works_;
};

}  // namespace reprise
