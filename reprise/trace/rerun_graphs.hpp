// What the graphs and executables of a re-run touch, so that none is launched that would touch
// memory which is gone. Follows captures over forks as the rules of the seam have them. For this
// room's .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "reprise/trace/rerun_memory.hpp"

namespace reprise {

class rerun_graphs {
 public:
  // Each is told after the call succeeded, by the numbers of the trace.
  void began(stream_id stream);
  void submitted(stream_id stream, const traced_work& what, node_id node);
  void ended(stream_id stream, graph_id made);  // `none`: given up
  void left(stream_id stream);                  // it dies in a capture that it only joined
  void cloned(graph_id from, std::span<const node_id> gone, graph_id made);
  void instantiated(graph_id from, executable_id made);
  void enabled(executable_id executable, node_id node, bool on);
  void changed(executable_id executable, node_id node, const traced_work& what);
  void updated(executable_id executable, graph_id from);

  // The first range that a launch would touch and may not.
  std::optional<range_fault> fault_of(executable_id executable, const rerun_memory& memory);

 private:
  // A captured work. Nodes that were changed one by one keep that over an update of the whole.
  struct row {
    node_id node = node_id::none;
    std::vector<traced_range> ranges;
    bool on = true;
    bool changed = false;
  };
  using rows = std::vector<row>;
  struct executable_row {
    rows works;
    std::optional<std::uint64_t> whole_at;  // lives_ended() when nothing was wrong with it
  };
  using capture_key = std::uint64_t;  // 0: none

  template <class Map, class Key>
  static capture_key key_of(const Map& map, Key key) {
    const auto found = map.find(key);
    return found == map.end() ? 0 : found->second;
  }
  static row* last_of(rows& works, node_id node);
  row* find(executable_id executable, node_id node);

  capture_key last_capture_ = 0;
  std::unordered_map<capture_key, rows> captures_;
  std::unordered_map<stream_id, capture_key> captured_streams_;
  std::unordered_map<event_id, capture_key> captured_events_;
  std::unordered_map<graph_id, rows> graphs_;
  std::unordered_map<executable_id, executable_row> executables_;
};

}  // namespace reprise
