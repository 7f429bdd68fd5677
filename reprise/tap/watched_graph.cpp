#include "reprise/tap/watched_graph.hpp"

#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/replay/output_table.hpp"
#include "reprise/tap/foreign_taps.hpp"
#include "reprise/toggle/refusal.hpp"

namespace reprise {

namespace {

// Producers that have made room for a launch hear what became of it.
class one_launch {
 public:
  one_launch(producers& works, site at) : works_{works}, at_{at} {}
  ~one_launch() { works_.after_launch(at_, launched); }
  one_launch(const one_launch&) = delete;
  one_launch& operator=(const one_launch&) = delete;

  bool launched = false;

 private:
  producers& works_;
  site at_;
};

}  // namespace

watched_graph::watched_graph(std::shared_ptr<tap_core> core, std::shared_ptr<foreign_graph> graph,
                             executable_ref executable)
    : core_{std::move(core)}, graph_{std::move(graph)}, executable_{executable} {}

replay_id watched_graph::launch(site at, std::span<const request_rows> requests) {
  core_->next_step(requests, step_gate::gated);
  if (!REPRISE_MUTANT(watched_launches_keep_no_order)) graph_->order.enter(at.stream, at.place);
  if (core_->watches()) {
    try {
      return launch_watched(at);
    } catch (const switch_refusal& refusal) {
      if (refusal.why() != refused::session_ended) throw;  // else all is as it was found
    }
  } else {
    core_->begin_step();
  }
  executable_.launch(at);
  return next_replay();
}

replay_id watched_graph::launch_watched(site at) {
  producers& works = *graph_->works;
  one_launch told{works, at};
  if (works.make_room(at) != nullptr) core_->drop(works.points());
  const replay_id id = next_replay();
  works.before_launch(at, id);
  executable_.launch(at);
  told.launched = true;
  return id;
}

}  // namespace reprise
