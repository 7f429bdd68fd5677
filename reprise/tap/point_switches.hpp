// Which producers of recorded graphs run: what a monitor wants of its toggle_session.
//
// A key is the id of a point; the works that all producers of a graph share (the node that brings
// their plan, and the one that publishes) have the keys of all of them. So a graph in which no
// point is on is, for as long as the session makes it so, the bare one. What the plan says holds
// whether a node was switched or not: a producer that runs all the same publishes nothing.
//
// In mode `device` the graph switches its own producers, by the plan that it brings, and there is
// no session. For this room's .cpp files; used by the thread that runs steps, but for `counts`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "reprise/toggle/session.hpp"

namespace reprise {

// What runs of the works of a recorded graph.
enum class running : std::uint8_t { all, as_wanted, nothing };

class point_switches {
 public:
  point_switches(device_ref device, toggle_mode mode);

  bool are_driven() const { return mode_ == toggle_mode::device; }
  // Ahead of a step, while nothing of it is enqueued, where anything is bound; else at its launch.
  bool are_switched_early() const {
    return mode_ == toggle_mode::host_eager && !session_.keys().empty();
  }

  // Of one capture: producer i is the work of point i, `shared` are those of all. False: they are
  // not switched, and what is off publishes nothing; where the graph switches its own, and where
  // another monitor, which was first, switches the executable.
  bool note(stream_ref captured, std::span<const std::uint64_t> points,
            std::span<const node_id> producers, std::span<const node_id> shared);
  void bind(graph_ref graph, executable_ref executable);
  // One that its owner may have bound before: all is on in it, whatever was known of its handle.
  void bind_anew(graph_ref graph, executable_ref executable, twins others);
  // Of the capture of this producer, which is part of a graph that switches its own of another
  // monitor: the host switches nothing in such an executable.
  void withdraw(node_id producer) { session_.withdraw(producer); }

  // What is on in the launch that follows: of the points that are bound, those for which `is_on`
  // says so, which is asked only where `version`, or what is bound, is not what it was. `dropped`:
  // that launch has no room, so nothing, where nothing needs no change of an executable.
  // For graphs whose works were noted.
  running want(std::uint64_t version, bool dropped,
               const std::function<bool(std::uint64_t point)>& is_on);

  // Why the session ended before its time; empty: it did not. All is as it was found then.
  std::string ended() const { return session_.ended(); }
  // Everything on, and nothing hooked.
  void clear() { session_.clear(); }
  toggle_counts counts() const { return session_.counts(); }

 private:
  toggle_mode mode_;
  toggle_session session_;
  switch_set wanted_;
  std::uint64_t version_ = 0;  // that `wanted_` is of; 0: none
  bool all_on_ = true;         // and nothing else was ever wanted
};

}  // namespace reprise
