// A graph of somebody else under a monitor: its executable is launched with a plan.
//
//   watched_graph watched = eye.bind(graph, executable);
//   watched.launch(stream, rows_of_the_batch);               // was executable.launch(stream)
//
// Each launch is one step: it plans, reserves, switches and launches from one plan object, with the
// numbers, the counts and the rules for a full ring that recorded steps have. A graph that somebody
// captured has no eager run to fall back to: rows that never fit are counted as dropped, or refused
// where monitor_options::allow_eager_fallback is false.
//
// A launch past it (by the owner, or of a monitor that has stopped) runs the model and publishes
// nothing. A value; used by the thread that runs the monitor's steps. The owner keeps graph and
// executable alive; the monitor may go before it.
#pragma once

#include <memory>
#include <span>

#include "reprise/base/ids.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/tap/tap_spec.hpp"

namespace reprise {

struct foreign_graph;
class tap_core;

class watched_graph {
 public:
  // In the order of the stream, behind all launches before, on whatever stream they were. Throws
  // switch_refusal (toggle/refusal.hpp) where works could not be switched and nothing was launched;
  // a second time it is launched unwatched, which is reported once. Returns the number that its
  // records have.
  replay_id launch(site at, std::span<const request_rows> requests = {});

 private:
  friend class monitor;
  watched_graph(std::shared_ptr<tap_core> core, std::shared_ptr<foreign_graph> graph,
                executable_ref executable);

  replay_id launch_watched(site at);

  std::shared_ptr<tap_core> core_;
  std::shared_ptr<foreign_graph> graph_;
  executable_ref executable_;
};

}  // namespace reprise
