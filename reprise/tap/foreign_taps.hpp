// What a monitor has put into graphs that somebody else captures, between the window of a capture
// and the watch over its executables. For this room's .cpp files; on the thread that runs steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reprise/replay/stream_order.hpp"
#include "reprise/tap/eager_taps.hpp"
#include "reprise/tap/producers.hpp"

namespace reprise {

struct foreign_graph {
  std::shared_ptr<producers> works;
  std::uint64_t capture = 0;
  std::weak_ptr<const void> alive;  // ends with the graph and all that was made of it
  stream_order order;               // of launches of all its executables, which share their words
};

class foreign_taps {
 public:
  explicit foreign_taps(std::shared_ptr<tap_core> of) : core{std::move(of)}, eager{core} {}

  void add(std::shared_ptr<foreign_graph> made);
  // Null: no window of this monitor has put works into it.
  std::shared_ptr<foreign_graph> find(std::span<const node_row> nodes) const;
  bool has(std::uint64_t capture) const;

  const std::shared_ptr<tap_core> core;
  eager_taps eager;
  bool is_open = false;  // a window of a capture: the branch has one stream

 private:
  std::vector<std::shared_ptr<foreign_graph>> all_;
};

}  // namespace reprise
