#include "reprise/sim/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise::sim {

namespace {

void add_once(std::vector<std::size_t>& to, std::size_t index) {
  if (std::ranges::find(to, index) == to.end()) to.push_back(index);
}

}  // namespace

void kept_owners::keep(std::shared_ptr<const void> owner) {
  if (std::ranges::find(all_, owner) == all_.end()) all_.push_back(std::move(owner));
}

node_kind kind_of(const work& what) {
  switch (what.kind) {
    case work_kind::kernel:
    case work_kind::external: return node_kind::kernel;
    case work_kind::copy: return node_kind::copy;
    case work_kind::fill: return node_kind::fill;
    case work_kind::host_call: return node_kind::host_call;
    case work_kind::empty: return node_kind::empty;
    case work_kind::event_record:
    case work_kind::event_wait: break;
  }
  return node_kind::other;
}

std::size_t graph_body::index_of(node_id id, std::string_view call) const {
  const auto found = id == node_id::none ? nodes.end() : std::ranges::find(nodes, id, &node::id);
  if (found == nodes.end()) refuse_node(call, id);
  return static_cast<std::size_t>(found - nodes.begin());
}

std::vector<std::size_t> graph_body::works() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].what) all.push_back(i);
  }
  return all;
}

std::vector<node_row> graph_body::rows() const {
  std::vector<node_row> all;
  for (const node& n : nodes) {
    if (!n.what) continue;
    const work what = n.what->borrow();
    all.push_back({n.id, kind_of(what), std::string{what.label}});
  }
  return all;
}

template <class Stays>
std::vector<std::vector<std::size_t>> graph_body::ties_among(Stays&& stays) const {
  std::vector<std::vector<std::size_t>> all;
  std::vector<std::vector<std::size_t>> stands_for(nodes.size());  // those that stay, by ordinal
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::size_t> after;
    for (const std::size_t before : nodes[i].after) {
      for (const std::size_t b : stands_for[before]) add_once(after, b);
    }
    if (!stays(i)) {
      if (!REPRISE_MUTANT(sim_clone_cuts_the_order)) stands_for[i] = std::move(after);
      continue;
    }
    stands_for[i] = {all.size()};
    all.push_back(std::move(after));
  }
  return all;
}

std::vector<std::vector<std::size_t>> graph_body::topology() const {
  auto all = ties_among([&](std::size_t i) { return nodes[i].what != nullptr; });
  for (std::vector<std::size_t>& after : all) std::ranges::sort(after);
  return all;
}

graph_body graph_body::without(std::span<const node_id> gone) const {
  std::vector<bool> out(nodes.size(), false);
  for (const node_id id : gone) {
    const std::size_t i = index_of(id, "clone_without");
    const work what = nodes[i].what->borrow();
    require_toggle("clone_without", what.label, kind_of(what));
    out[i] = true;
  }
  graph_body rest;
  static_cast<kept_owners&>(rest) = *this;
  // One with notes stays as a place.
  const auto stays = [&](std::size_t i) { return !out[i] || !nodes[i].notes.empty(); };
  auto ties = ties_among(stays);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!stays(i)) continue;
    std::vector<std::size_t>& after = ties[rest.nodes.size()];
    rest.nodes.push_back({out[i] ? node_id::none : nodes[i].id, out[i] ? nullptr : nodes[i].what,
                          std::move(after), nodes[i].notes, nodes[i].captured_on});
  }
  return rest;
}

executable_body::executable_body(std::shared_ptr<const graph_body> from,
                                 std::span<const node_id> driven)
    : original_{std::move(from)},
      works_{original_->works()},
      current_{original_},
      current_works_{works_},
      enabled_(works_.size(), 1),
      driven_{driven.begin(), driven.end()} {
  for (const node_id id : driven_) {
    const work what = recorded(ordinal_of(id, "instantiate_device_driven"));
    if (what.kind == work_kind::kernel) continue;
    throw usage_error{
        fmt::format("instantiate_device_driven: '{}' is a node of kind {}, and only single kernels "
                    "are switched by kernels; leave it out",
                    what.label, name_of(kind_of(what)))};
  }
}

std::size_t executable_body::ordinal_of(node_id node, std::string_view call) const {
  const std::size_t i = original_->index_of(node, call);
  return static_cast<std::size_t>(std::ranges::lower_bound(works_, i) - works_.begin());
}

work executable_body::recorded(std::size_t ordinal) const {
  return original_->nodes[works_[ordinal]].what->borrow();
}

const std::shared_ptr<const stored_work>& executable_body::what_runs(std::size_t ordinal) const {
  const auto other = changed_.find(ordinal);
  return other != changed_.end() ? other->second : current_->nodes[current_works_[ordinal]].what;
}

void executable_body::run(worker_ref workers) {
  const std::lock_guard lock{guard_};
  for (std::size_t i = 0; i < enabled_.size(); ++i) {
    if (std::atomic_ref{enabled_[i]}.load(std::memory_order_relaxed) == 0) continue;
    run_now(what_runs(i)->borrow(), workers);
  }
}

std::vector<launched_node> executable_body::as_launched(std::shared_ptr<const graph_body>& holder) {
  const std::lock_guard lock{guard_};
  holder = current_;
  std::vector<launched_node> all;
  all.reserve(current_->nodes.size());
  std::size_t ordinal = 0;
  for (const graph_body::node& n : current_->nodes) {
    launched_node& made = all.emplace_back();
    made.from = &n;
    if (!n.what) continue;
    const bool driven = std::ranges::find(driven_, n.id) != driven_.end();
    if (driven || REPRISE_MUTANT(sim_switch_reaches_earlier_launches)) {
      made.driven_by = &enabled_[ordinal];
      made.what = what_runs(ordinal);
    }
    if (driven || enabled_[ordinal] != 0) made.what = what_runs(ordinal);
    ++ordinal;
  }
  return all;
}

void executable_body::require_host_driven(std::string_view call) const {
  if (!driven_.empty()) refuse_driven(call);
}

void executable_body::enable(node_id node, bool on) {
  require_host_driven("enable");
  const std::size_t i = ordinal_of(node, "enable");
  const work what = recorded(i);
  require_toggle("enable", what.label, kind_of(what));
  const std::lock_guard lock{guard_};
  enabled_[i] = on ? 1 : 0;
}

void executable_body::set_parameters(node_id node, const work& what) {
  require_host_driven("set_parameters");
  const std::size_t i = ordinal_of(node, "set_parameters");
  const work before = recorded(i);
  if (before.kind != what.kind || what.kind == work_kind::external ||
      !can_be_toggled(kind_of(before))) {
    throw usage_error{
        fmt::format("set_parameters: '{}' was recorded as {} and is given those of {} '{}'; a "
                    "kernel, copy or fill keeps its kind",
                    before.label, name_of(before.kind), name_of(what.kind), what.label)};
  }
  auto stored = std::make_shared<const stored_work>(what);
  const std::lock_guard lock{guard_};
  changed_[i] = std::move(stored);
  if (REPRISE_MUTANT(sim_parameters_enable_the_node)) enabled_[i] = 1;
}

bool executable_body::update(std::shared_ptr<const graph_body> from) {
  require_host_driven("update");
  std::vector<std::size_t> theirs = from->works();
  if (theirs.size() != works_.size() || from->topology() != original_->topology()) return false;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    if (kind_of(recorded(i)) != kind_of(from->nodes[theirs[i]].what->borrow())) return false;
  }
  const std::lock_guard lock{guard_};
  current_.swap(from);  // the old one goes when the lock is gone
  current_works_ = std::move(theirs);
  if (REPRISE_MUTANT(sim_update_forgets_changes)) changed_.clear();
  return true;
}

device_node executable_body::handle(node_id node) const {
  if (std::ranges::find(driven_, node) == driven_.end()) {
    throw usage_error{
        fmt::format("device_handle: node {} is not driven by the device; name it when the graph is "
                    "instantiated",
                    static_cast<std::uint64_t>(node))};
  }
  return device_node{reinterpret_cast<std::uintptr_t>(&enabled_[ordinal_of(node, "handle")])};
}

void executable_body::keep(std::shared_ptr<const void> owner) {
  const std::lock_guard lock{guard_};
  kept_owners::keep(std::move(owner));
}

}  // namespace reprise::sim
