#include "reprise/toggle/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/toggle/session_core.hpp"

namespace reprise {

namespace {

void require_device(const session_core& session, device_ref device, const char* call) {
  if (session.device == device) return;
  throw usage_error{
      fmt::format("{}: the session is of {}, what it is given of {}; make a session "
                  "for each device",
                  call, session.device.name(), device.name())};
}

std::shared_ptr<capture_stamp> find_stamp(session_core& session,
                                          const std::vector<node_row>& rows) {
  const auto has = [&](node_id node) {
    return std::ranges::find(rows, node, &node_row::id) != rows.end();
  };
  for (auto& stamp : session.hub.stamps()) {
    if (stamp->owner != session.options.owner) continue;
    const bool is_noted = std::ranges::any_of(stamp->noted, has, &noted_work::node);
    if (is_noted || std::ranges::any_of(stamp->counted, has)) return stamp;
  }
  throw usage_error{
      "bind: the graph has no switchable work of this session; capture it inside a window, and "
      "note each launch"};
}

void require_usable(const session_core& session, const capture_stamp& stamp) {
  if (stamp.session != session.number) {
    throw usage_error{
        fmt::format("bind: '{}' was recorded in an earlier session, whose keys are forgotten; "
                    "record it again",
                    stamp.label)};
  }
  if (!stamp.counted.empty()) {
    throw usage_error{
        fmt::format("bind: {} switchable works were launched into '{}' and not noted; record it "
                    "again with each of them noted in the window",
                    stamp.counted.size(), stamp.label)};
  }
}

// Of what was noted, what is in this graph: in the order of the notes, each of kinds that can be
// switched.
std::vector<noted_work> works_in(const std::vector<node_row>& rows, const capture_stamp& stamp) {
  std::vector<noted_work> here;
  for (const noted_work& work : stamp.noted) {
    bool found = false;
    for (const node_row& row : rows) {
      if (row.id != work.node) continue;
      found = true;
      if (!REPRISE_MUTANT(toggle_binds_any_kind)) require_toggle("bind", row.label, row.kind);
    }
    if (found) here.push_back(work);
  }
  return here;
}

bool wants_twins(const toggle_options& options, std::size_t nodes) {
  switch (options.mode) {
    case toggle_mode::automatic:
    case toggle_mode::variants: return true;
    case toggle_mode::host_lazy:
    case toggle_mode::host_eager: return predicted_demotion_us(nodes, 1) != 0;
    case toggle_mode::device: break;
  }
  return false;
}

// Graphs of others may hold nodes that forbid cloning, of memory for one.
void keep_template(const session_core& session, bound::works& works, graph_ref graph) {
  try {
    works.from.emplace(graph, std::span<const node_id>{});
  } catch (const error& failure) {
    if (session.options.mode != toggle_mode::variants) return;
    throw usage_error{fmt::format(
        "bind: variants are made of clones of the graph, and '{}' cannot be cloned: {}; "
        "use host_lazy",
        works.stamp->label, failure.what())};
  }
}

void require_not_anybody_elses(session_core& session, executable_id executable) {
  const session_core* const owner = session.hub.owner_of(executable);
  if (owner == nullptr || owner == &session) return;
  throw usage_error{
      "bind: the executable is bound by a session of another owner; one session switches it, so "
      "record the step for each of them"};
}

// One that was removed may be in flight; its owner has said that it is not.
void drop(session_core& session, executable_id executable) {
  const auto gone = std::ranges::find(session.bindings, executable, &bound::executable);
  if (gone == session.bindings.end()) return;
  std::string why;
  if (!gone->restore(session.counts, why)) {
    throw error{fmt::format("unbind: switching back failed, so it stays bound: {}", why)};
  }
  session.hub.release(*gone);
  session.bindings.erase(gone);
  session.counts.bound = session.bindings.size();
}

// Devices close late what was destroyed with work in flight, and until then it passes for alive: a
// graph that nobody bound, an executable that is bound. Ahead of the lock, since what such an
// object held goes with it and may be a session's own.
void close_finished(const session_core& session) {
  if (!REPRISE_MUTANT(toggle_judges_what_is_over)) session.device.api().close_finished();
}

// The same ahead of a refusal for a graph that is not bound: one that is being destroyed is waited
// for, but in a capture, where nobody may wait.
void settle_what_is_unbound(std::unique_lock<mutex>& lock, session_core& session) {
  lock.unlock();
  close_finished(session);
  lock.lock();
  if (session.unbound() == nullptr || session.device.state().open_captures != 0) return;
  lock.unlock();
  if (!REPRISE_MUTANT(toggle_judges_what_is_over)) session.device.api().settle();
  lock.lock();
}

bool has_key(const session_core& session, switch_key key) {
  return std::ranges::any_of(session.bindings,
                             [&](const bound& one) { return one.keys().contains(key); });
}

}  // namespace

toggle_session::toggle_session(device_ref device, toggle_options options)
    : core_{std::make_shared<session_core>(device, std::move(options))} {}

toggle_session::~toggle_session() {
  try {
    clear();
  } catch (const std::exception& failure) {
    report_error(failure.what());
  }
}

toggle_owner toggle_session::owner() const {
  return core_->options.owner;
}

capture_window toggle_session::open_window(stream_ref captured) {
  const std::lock_guard lock{core_->hub.guard};
  require_device(*core_, captured.device(), "open_window");
  core_->require_running("open_window");
  core_->begin();
  try {
    return capture_window{core_, captured};
  } catch (...) {
    core_->pause_if_idle();
    throw;
  }
}

void toggle_session::counted(stream_ref captured, node_id work) {
  const std::lock_guard lock{core_->hub.guard};
  if (work == node_id::none || core_->number == 0) return;
  const auto stamp = core_->stamp_of(captured, true);
  if (stamp == nullptr || REPRISE_MUTANT(toggle_counts_no_launches)) return;
  const bool noted = std::ranges::find(stamp->noted, work, &noted_work::node) != stamp->noted.end();
  if (!noted) stamp->counted.push_back(work);
}

void toggle_session::withdraw(node_id work) {
  const std::lock_guard lock{core_->hub.guard};
  for (const auto& stamp : core_->hub.stamps()) {
    if (stamp->owner != core_->options.owner) continue;
    if (std::ranges::find(stamp->noted, work, &noted_work::node) == stamp->noted.end()) continue;
    stamp->noted.clear();
    stamp->counted.clear();
  }
}

void toggle_session::bind(graph_ref graph, executable_ref executable, twins others) {
  close_finished(*core_);
  const std::lock_guard lock{core_->hub.guard};
  session_core& session = *core_;
  require_device(session, graph.device(), "bind");
  require_device(session, executable.device(), "bind");
  session.require_running("bind");
  session.drop_the_dead();
  if (session.options.mode == toggle_mode::device) {
    throw usage_error{
        "bind: the session is of mode device, in which kernels switch; instantiate the graph with "
        "device-driven nodes, or make a session of another mode"};
  }
  if (session.options.mode == toggle_mode::variants && others == twins::forbidden) {
    throw usage_error{
        "bind: variants run other executables in the place of the bound one, which are forbidden "
        "here; allow them, or use host_lazy"};
  }
  if (session.hub.owner_of(executable.id()) == &session &&
      !REPRISE_MUTANT(toggle_binds_the_same_again)) {
    return;
  }
  require_not_anybody_elses(session, executable.id());
  const std::vector<node_row> rows = graph.nodes();
  const auto stamp = find_stamp(session, rows);
  require_usable(session, *stamp);
  bound::works works{stamp, works_in(rows, *stamp), rows.size(), std::nullopt};
  if (others == twins::allowed && wants_twins(session.options, rows.size())) {
    keep_template(session, works, graph);
  }
  bound made{session.device, executable.id(), session.hub.life_of(session.device, executable.id()),
             std::move(works)};
  const bool differs =
      session.is_active && !session.bindings.empty() && !(made.keys() == session.keys_of_all());
  if (differs && !session.options.keys_may_differ) {
    throw usage_error{
        fmt::format("bind: '{}' has other keys than what is bound; record it under the same "
                    "points, or set toggle_options::keys_may_differ",
                    stamp->label)};
  }
  session.add(std::move(made));
  session.begin();
}

void toggle_session::bind(const fixed_executable& executable) {
  close_finished(*core_);
  const std::lock_guard lock{core_->hub.guard};
  session_core& session = *core_;
  require_device(session, executable.device(), "bind");
  session.require_running("bind");
  session.drop_the_dead();
  if (session.options.mode != toggle_mode::device) {
    throw usage_error{
        fmt::format("bind: the executable is device driven and the session of mode {}, which "
                    "switches by the host; make a session of mode device",
                    name_of(session.options.mode))};
  }
  if (session.hub.owner_of(executable.id()) == &session) return;
  require_not_anybody_elses(session, executable.id());
  const auto has = [&](const std::shared_ptr<capture_stamp>& stamp) {
    if (stamp->owner != session.options.owner || stamp->noted.empty()) return false;
    try {
      (void)executable.handle(stamp->noted.front().node);
      return true;
    } catch (const usage_error&) {
      return false;
    }
  };
  const auto all = session.hub.stamps();
  const auto found = std::ranges::find_if(all, has);
  if (found == all.end()) {
    throw usage_error{
        "bind: no work of this session is driven in the executable; note the works in a window and "
        "name them when the graph is instantiated"};
  }
  const std::shared_ptr<capture_stamp>& stamp = *found;
  require_usable(session, *stamp);
  if (stamp->words == nullptr || stamp->words->works() < stamp->noted.size()) {
    throw usage_error{fmt::format(
        "bind: '{}' has {} works and words for {} of them; ask words_for_planner for as "
        "many as are noted, and launch the planner ahead of them",
        stamp->label, stamp->noted.size(), stamp->words == nullptr ? 0 : stamp->words->works())};
  }
  std::vector<device_node> handles;
  for (const noted_work& work : stamp->noted) handles.push_back(executable.handle(work.node));
  session.device.api().keep(executable.id(), stamp->words);
  bound made{session.device,
             executable.id(),
             session.hub.life_of(session.device, executable.id()),
             {stamp, stamp->noted, executable.nodes(), std::nullopt},
             std::move(handles)};
  made.send_words(*session.home, session.counts);
  session.add(std::move(made));
  session.begin();
}

void toggle_session::rebind(graph_ref graph, executable_ref executable, twins others) {
  {
    const std::lock_guard lock{core_->hub.guard};
    const auto gone = std::ranges::find(core_->bindings, executable.id(), &bound::executable);
    if (gone != core_->bindings.end()) {
      core_->hub.forget(*gone);  // its nodes are of an executable that is no more
      core_->bindings.erase(gone);
    }
  }
  bind(graph, executable, others);
}

void toggle_session::unbind(executable_ref executable) {
  const std::lock_guard lock{core_->hub.guard};
  drop(*core_, executable.id());
}

void toggle_session::set(const switch_set& wanted) {
  std::unique_lock lock{core_->hub.guard};
  session_core& session = *core_;
  const bool eager = session.options.mode == toggle_mode::host_eager;
  session.require_running("set");
  if (session.is_active && session.wanted == wanted) return;
  if (!session.is_active || eager) settle_what_is_unbound(lock, session);
  session.require_running("set");
  session.drop_the_dead();
  if (!session.is_active) session.require_activation();
  for (const switch_key key : wanted) {
    if (session.options.keys_may_differ || has_key(session, key)) continue;
    throw usage_error{
        fmt::format("set: no bound graph has key {}; note it in a window, or leave it "
                    "out",
                    static_cast<std::uint64_t>(key))};
  }
  if (eager && !REPRISE_MUTANT(toggle_changes_what_is_in_flight)) {
    for (const bound& one : session.bindings) {
      if (!one.differs_from(wanted) || !one.may_be_in_flight()) continue;
      throw usage_error{
          fmt::format("set: host_eager changes every bound executable now, and one of '{}' may be "
                      "in flight; synchronise its stream first, or use host_lazy",
                      one.stamp()->label)};
    }
  }
  session.is_active = true;
  session.wanted = wanted;
  ++session.version;
  ++session.counts.switches;
  if (eager) session.apply_now();
}

switch_set toggle_session::keys() const {
  close_finished(*core_);
  const std::lock_guard lock{core_->hub.guard};
  core_->drop_the_dead();
  return core_->keys_of_all();
}

void toggle_session::clear() {
  const std::lock_guard lock{core_->hub.guard};
  session_core& session = *core_;
  session.restore();
  session.number = REPRISE_MUTANT(toggle_session_goes_on_after_clear) ? session.number : 0;
  session.ended_by.clear();
  session.loose_anomalies = 0;
  session.loose_anomaly.clear();
  session.memory.reset();
  session.home.reset();
}

bool toggle_session::active() const {
  const std::lock_guard lock{core_->hub.guard};
  return core_->is_hooked;
}

bool toggle_session::is_anothers(stream_ref captured) const {
  const std::lock_guard lock{core_->hub.guard};
  const std::uint64_t capture = core_->device.api().place_in_capture(captured.id()).capture;
  return capture != 0 && std::ranges::any_of(core_->hub.stamps(), [&](const auto& one) {
           return one->capture == capture && one->owner != core_->options.owner &&
                  !one->noted.empty();
         });
}

std::string toggle_session::ended() const {
  const std::lock_guard lock{core_->hub.guard};
  return core_->ended_by;
}

toggle_counts toggle_session::counts() const {
  const std::lock_guard lock{core_->hub.guard};
  return core_->counts;
}

}  // namespace reprise
