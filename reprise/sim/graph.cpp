#include "reprise/sim/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"

namespace reprise::sim {

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
  const auto found = std::ranges::find(nodes, id, &node::id);
  if (found == nodes.end()) refuse_node(call, id);
  return static_cast<std::size_t>(found - nodes.begin());
}

std::vector<node_row> graph_body::rows() const {
  std::vector<node_row> all;
  for (const node& n : nodes) {
    const work what = n.what->borrow();
    all.push_back({n.id, kind_of(what), std::string{what.label}});
  }
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
  std::vector<std::vector<std::size_t>> stands_for(nodes.size());  // in the indices of `rest`
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::size_t> after;
    for (const std::size_t before : nodes[i].after) {
      for (const std::size_t b : stands_for[before]) {
        if (std::ranges::find(after, b) == after.end()) after.push_back(b);
      }
    }
    if (out[i]) {
      stands_for[i] = std::move(after);
      continue;
    }
    stands_for[i] = {rest.nodes.size()};
    rest.nodes.push_back({nodes[i].id, nodes[i].what, std::move(after)});
  }
  return rest;
}

executable_body::executable_body(std::shared_ptr<const graph_body> from,
                                 std::span<const node_id> driven)
    : original_{std::move(from)},
      current_{original_},
      enabled_(original_->nodes.size(), 1),
      driven_{driven.begin(), driven.end()} {
  for (const node_id id : driven_) {
    const work what =
        original_->nodes[original_->index_of(id, "instantiate_device_driven")].what->borrow();
    if (what.kind == work_kind::kernel) continue;
    throw usage_error{
        fmt::format("instantiate_device_driven: '{}' is a node of kind {}, and only single kernels "
                    "are switched by kernels; leave it out",
                    what.label, name_of(kind_of(what)))};
  }
}

void executable_body::run(worker_ref workers) {
  const std::lock_guard lock{guard_};
  for (std::size_t i = 0; i < enabled_.size(); ++i) {
    if (std::atomic_ref{enabled_[i]}.load(std::memory_order_relaxed) == 0) continue;
    const auto other = changed_.find(i);
    const stored_work& what = other != changed_.end() ? *other->second : *current_->nodes[i].what;
    run_now(what.borrow(), workers);
  }
}

void executable_body::require_host_driven(std::string_view call) const {
  if (!driven_.empty()) refuse_driven(call);
}

void executable_body::enable(node_id node, bool on) {
  require_host_driven("enable");
  const std::size_t i = original_->index_of(node, "enable");
  const work what = original_->nodes[i].what->borrow();
  require_toggle("enable", what.label, kind_of(what));
  const std::lock_guard lock{guard_};
  enabled_[i] = on ? 1 : 0;
}

void executable_body::set_parameters(node_id node, const work& what) {
  require_host_driven("set_parameters");
  const std::size_t i = original_->index_of(node, "set_parameters");
  const work recorded = original_->nodes[i].what->borrow();
  if (recorded.kind != what.kind || what.kind == work_kind::external ||
      !can_be_toggled(kind_of(recorded))) {
    throw usage_error{
        fmt::format("set_parameters: '{}' was recorded as {} and is given those of {} '{}'; a "
                    "kernel, copy or fill keeps its kind",
                    recorded.label, name_of(recorded.kind), name_of(what.kind), what.label)};
  }
  auto stored = std::make_shared<const stored_work>(what);
  const std::lock_guard lock{guard_};
  changed_[i] = std::move(stored);
}

bool executable_body::update(std::shared_ptr<const graph_body> from) {
  require_host_driven("update");
  const auto alike = [](const graph_body::node& a, const graph_body::node& b) {
    return kind_of(a.what->borrow()) == kind_of(b.what->borrow()) && a.after == b.after;
  };
  if (!std::ranges::equal(original_->nodes, from->nodes, alike)) return false;
  const std::lock_guard lock{guard_};
  current_.swap(from);  // the old one goes when the lock is gone
  return true;
}

device_node executable_body::handle(node_id node) const {
  if (std::ranges::find(driven_, node) == driven_.end()) {
    throw usage_error{
        fmt::format("device_handle: node {} is not driven by the device; name it when the graph is "
                    "instantiated",
                    static_cast<std::uint64_t>(node))};
  }
  const std::size_t i = original_->index_of(node, "device_handle");
  return device_node{reinterpret_cast<std::uintptr_t>(&enabled_[i])};
}

void executable_body::keep(std::shared_ptr<const void> owner) {
  const std::lock_guard lock{guard_};
  kept_owners::keep(std::move(owner));
}

}  // namespace reprise::sim
