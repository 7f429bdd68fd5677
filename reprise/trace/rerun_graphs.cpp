#include "reprise/trace/rerun_graphs.hpp"

#include <algorithm>
#include <utility>

namespace reprise {

void rerun_graphs::began(stream_id stream) {
  captured_streams_[stream] = ++last_capture_;
  captures_[last_capture_];
}

void rerun_graphs::submitted(stream_id stream, const traced_work& what, node_id node) {
  const capture_key open = key_of(captured_streams_, stream);
  if (what.kind == work_kind::event_record) {
    captured_events_[what.event] = open;
  } else if (what.kind == work_kind::event_wait) {
    // A stream that waits for a captured event joins the capture.
    const capture_key of = key_of(captured_events_, what.event);
    if (open == 0 && captures_.contains(of)) captured_streams_[stream] = of;
  } else if (open != 0) {
    captures_[open].push_back({node, ranges_of(what), true, false});
  }
}

void rerun_graphs::ended(stream_id stream, graph_id made) {
  const capture_key over = key_of(captured_streams_, stream);
  if (over == 0) return;
  if (made != graph_id::none) graphs_[made] = std::move(captures_[over]);
  captures_.erase(over);
  std::erase_if(captured_streams_, [&](const auto& one) { return one.second == over; });
}

void rerun_graphs::left(stream_id stream) {
  captured_streams_.erase(stream);
}

void rerun_graphs::cloned(graph_id from, std::span<const node_id> gone, graph_id made) {
  rows kept = graphs_[from];
  for (const node_id node : gone) {
    if (row* const found = last_of(kept, node)) kept.erase(kept.begin() + (found - kept.data()));
  }
  graphs_[made] = std::move(kept);
}

void rerun_graphs::instantiated(graph_id from, executable_id made) {
  executables_[made] = {graphs_[from], std::nullopt};
}

// A trace that was tampered with may give one number twice: it stands for the work that came last,
// as the number of a handle does.
rerun_graphs::row* rerun_graphs::last_of(rows& works, node_id node) {
  const auto found =
      std::find_if(works.rbegin(), works.rend(), [&](const row& one) { return one.node == node; });
  return found == works.rend() ? nullptr : &*found;
}

rerun_graphs::row* rerun_graphs::find(executable_id executable, node_id node) {
  executable_row& at = executables_[executable];
  at.whole_at.reset();
  return last_of(at.works, node);
}

void rerun_graphs::enabled(executable_id executable, node_id node, bool on) {
  if (row* const found = find(executable, node)) found->on = on;
}

void rerun_graphs::changed(executable_id executable, node_id node, const traced_work& what) {
  if (row* const found = find(executable, node)) {
    found->ranges = ranges_of(what);
    found->changed = true;
  }
}

void rerun_graphs::updated(executable_id executable, graph_id from) {
  executable_row& at = executables_[executable];
  at.whole_at.reset();
  const rows& other = graphs_[from];
  // Of one topology, so of as many works; in the order of their captures.
  for (std::size_t i = 0; i < std::min(at.works.size(), other.size()); ++i) {
    if (!at.works[i].changed) at.works[i].ranges = other[i].ranges;
  }
}

std::optional<range_fault> rerun_graphs::fault_of(executable_id executable,
                                                  const rerun_memory& memory) {
  const auto found = executables_.find(executable);
  if (found == executables_.end()) return std::nullopt;
  executable_row& at = found->second;
  if (at.whole_at == memory.lives_ended()) return std::nullopt;
  for (const row& one : at.works) {
    if (!one.on) continue;
    for (const traced_range& range : one.ranges) {
      if (auto fault = memory.fault_of(range)) return fault;
    }
  }
  at.whole_at = memory.lives_ended();
  return std::nullopt;
}

}  // namespace reprise
