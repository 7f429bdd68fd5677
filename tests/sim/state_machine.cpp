#include "tests/sim/state_machine.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace reprise::test {

namespace {

constexpr std::array names{
    "begin",      "end",    "abandon", "fill",  "fork",          "instantiate",        "launch",
    "update",     "toggle", "change",  "clone", "destroy_graph", "destroy_executable", "move",
    "synchronize"};

std::source_location here(std::source_location at = std::source_location::current()) {
  return at;
}

// Now and then one that is not there.
std::size_t index_of_node(const call& one, std::size_t nodes) {
  return nodes == 0 || one.value % 16 == 0 ? nodes : one.value % nodes;
}

}  // namespace

std::ostream& operator<<(std::ostream& to, const call& one) {
  return to << names[static_cast<std::size_t>(one.what)] << '(' << int{one.a} << ", " << int{one.b}
            << ", " << int{one.value} << ')';
}

std::ostream& operator<<(std::ostream& to, ending how) {
  constexpr std::array endings{"done", "not alike", "capture_error", "device_error", "usage_error"};
  return to << endings[static_cast<std::size_t>(how)];
}

state_machine::state_machine(device_ref dev)
    : dev_{dev},
      api_{dev.api()},
      stream_{dev},
      side_{dev},
      memory_{dev, "cells"},
      device_cells_{memory_, cell_count, stream_} {
  fill(stream_, write<std::uint32_t>{device_cells_}, std::uint32_t{0});
  stream_.synchronize();
}

state_machine::~state_machine() {
  api_.abandon_capture(stream_ref{stream_}.id());
  for (const executable_slot& e : executables_) api_.destroy(e.id);
  for (const graph_slot& g : graphs_) api_.destroy(g.id);
}

ending state_machine::make(const call& one) {
  try {
    return perform(one);
  } catch (const capture_error&) {
    return ending::capture_refused;
  } catch (const device_error&) {
    return ending::device_refused;
  } catch (const usage_error&) {
    return ending::usage_refused;
  }
}

work state_machine::fill_of(std::size_t cell, std::uint32_t value) {
  auto* const at = reinterpret_cast<std::byte*>(device_cells_.all().data() + cell);
  touched_ = {at, sizeof value, true};
  work what;
  what.kind = work_kind::fill;
  what.label = "fill";
  what.accesses = {&touched_, 1};
  what.place = here();
  what.fill = {at, sizeof value, value, sizeof value};
  return what;
}

node_id state_machine::add_fill(stream_ref on, std::size_t cell, std::uint32_t value) {
  return api_.submit(on.id(), fill_of(cell, value));
}

// Two fills side by side: one here, one on a branch that is joined at once. They and what they are
// changed to keep to a half of the cells each.
void state_machine::fork_fill(const call& one) {
  order(stream_, side_);
  fresh_.push_back(add_fill(stream_, one.a % half, one.value));
  fresh_.push_back(add_fill(side_, half + one.b % half, one.b));
  order(side_, stream_);
}

// What a node is changed to: another cell of the same half.
std::size_t state_machine::cell_to_change(const executable_slot& e, const call& one) {
  const std::size_t i = e.model ? index_of_node(one, e.model->made_of.size()) : 0;
  const bool there = e.model && i < e.model->made_of.size();
  return (there ? e.model->made_of[i].cell / half * half : 0) + one.a % half;
}

ending state_machine::perform(const call& one) {
  const stream_id on = stream_ref{stream_}.id();
  graph_slot& g = graphs_[one.a % slots];
  executable_slot& e = executables_[one.b % slots];
  // A node of the executable, or none where it has fewer.
  const auto node_of = [&](const executable_slot& in) {
    if (!in.model) return node_id::none;
    const std::size_t i = index_of_node(one, in.model->made_of.size());
    return i < in.model->made_of.size() ? in.model->made_of[i].id : node_id::none;
  };
  switch (one.what) {
    case action::begin: api_.begin_capture(on, here()); break;
    case action::end: {
      const graph_id fresh = api_.end_capture(on, here());
      api_.destroy(std::exchange(g.id, fresh));
      break;
    }
    case action::abandon: api_.abandon_capture(on); break;
    case action::fill: fresh_.push_back(add_fill(stream_, one.a % cell_count, one.value)); break;
    case action::fork: fork_fill(one); break;
    case action::instantiate: {
      const executable_id fresh = api_.instantiate(g.id, on, here());
      api_.destroy(std::exchange(e.id, fresh));
      break;
    }
    case action::launch: api_.launch(e.id, on, here()); break;
    case action::update: return api_.update(e.id, g.id, here()) ? ending::done : ending::not_alike;
    case action::toggle: api_.enable(e.id, node_of(e), one.a % 2 == 0, here()); break;
    case action::change:
      api_.set_parameters(e.id, node_of(e), fill_of(cell_to_change(e, one), one.value));
      break;
    case action::clone: {
      const std::size_t i = g.model ? index_of_node(one, g.model->size()) : 0;
      const bool there = g.model && i < g.model->size();
      const node_id gone = there ? (*g.model)[i].id : node_id::none;
      const graph_id fresh = api_.clone_without(g.id, {&gone, 1}, here());
      api_.destroy(std::exchange(graphs_[(one.a + 1U) % slots].id, fresh));
      break;
    }
    case action::destroy_graph: api_.destroy(std::exchange(g.id, graph_id::none)); break;
    case action::destroy_executable: api_.destroy(std::exchange(e.id, executable_id::none)); break;
    case action::move:
      std::swap(graphs_[0].id, graphs_[1].id);
      std::swap(executables_[0].id, executables_[1].id);
      break;
    case action::synchronize: api_.synchronize(on, here()); break;
  }
  return ending::done;
}

// A call that cannot be captured spoils the capture that is open.
ending state_machine::spoil() {
  open_->spoiled = true;
  return ending::capture_refused;
}

// After `make` of the same call: the ids that the device gave out are known then.
ending state_machine::expect(const call& one) {
  const ending how = foresee(one);
  fresh_.clear();
  return how;
}

ending state_machine::foresee(const call& one) {
  graph_slot& g = graphs_[one.a % slots];
  executable_slot& e = executables_[one.b % slots];
  const std::size_t cell = one.a % cell_count;
  const auto add = [&](std::size_t of, std::uint32_t value, std::set<std::size_t> after) {
    const std::size_t i = open_->nodes.size();
    const node_id id = i < open_->nodes.size() + fresh_.size() ? fresh_.front() : node_id::none;
    if (!fresh_.empty()) fresh_.erase(fresh_.begin());
    open_->nodes.push_back({id, of, value, std::move(after)});
    return i;
  };
  switch (one.what) {
    case action::begin:
      if (open_) return spoil();
      open_.emplace(capture_model{});
      return ending::done;
    case action::end: {
      if (!open_) return ending::capture_refused;
      const capture_model ended = *std::exchange(open_, std::nullopt);
      if (ended.spoiled) return ending::capture_refused;
      g.model = ended.nodes;
      return ending::done;
    }
    case action::abandon: open_.reset(); return ending::done;
    case action::fill:
      if (open_ && open_->spoiled) return ending::capture_refused;
      if (open_) {
        open_->tail = {add(cell, one.value, open_->tail)};
      } else {
        cells_[cell] = one.value;
      }
      return ending::done;
    case action::fork: {
      if (open_ && open_->spoiled) return ending::capture_refused;
      const std::size_t other = half + one.b % half;
      if (open_) {
        const auto before = open_->tail;
        const std::size_t first = add(one.a % half, one.value, before);
        open_->tail = {first, add(other, one.b, before)};
      } else {
        cells_[one.a % half] = one.value;
        cells_[other] = one.b;
      }
      return ending::done;
    }
    case action::instantiate:
      if (open_) return spoil();
      if (!g.model) return ending::device_refused;
      e.model = executable_model{*g.model, *g.model, {}, {}};
      return ending::done;
    case action::launch: {
      if (open_) return spoil();
      if (!e.model) return ending::device_refused;
      for (std::size_t i = 0; i < e.model->runs.size(); ++i) {
        if (e.model->off.contains(i)) continue;
        const auto changed = e.model->changed.find(i);
        const bool other = changed != e.model->changed.end();
        cells_[other ? changed->second.first : e.model->runs[i].cell] =
            other ? changed->second.second : e.model->runs[i].value;
      }
      return ending::done;
    }
    case action::update: {
      if (!e.model || !g.model) return ending::device_refused;
      const auto alike = [](const node& a, const node& b) { return a.after == b.after; };
      if (!std::ranges::equal(e.model->made_of, *g.model, alike)) return ending::not_alike;
      e.model->runs = *g.model;
      return ending::done;
    }
    case action::toggle:
    case action::change: {
      if (!e.model) return ending::device_refused;
      const std::size_t i = index_of_node(one, e.model->made_of.size());
      if (i >= e.model->made_of.size()) return ending::usage_refused;
      if (one.what == action::change) {
        e.model->changed[i] = {cell_to_change(e, one), one.value};
      } else if (one.a % 2 == 0) {
        e.model->off.erase(i);
      } else {
        e.model->off.insert(i);
      }
      return ending::done;
    }
    case action::clone: {
      if (!g.model) return ending::device_refused;
      const std::size_t gone = index_of_node(one, g.model->size());
      if (gone >= g.model->size()) return ending::usage_refused;
      graph_model rest;
      std::vector<std::set<std::size_t>> stands_for;
      for (std::size_t i = 0; i < g.model->size(); ++i) {
        std::set<std::size_t> after;
        for (const std::size_t b : (*g.model)[i].after) after.merge(std::set{stands_for[b]});
        if (i == gone) {
          stands_for.push_back(std::move(after));
          continue;
        }
        stands_for.push_back({rest.size()});
        rest.push_back((*g.model)[i]);
        rest.back().after = std::move(after);
      }
      graphs_[(one.a + 1U) % slots].model = std::move(rest);
      return ending::done;
    }
    case action::destroy_graph: g.model.reset(); return ending::done;
    case action::destroy_executable: e.model.reset(); return ending::done;
    case action::move:
      std::swap(graphs_[0].model, graphs_[1].model);
      std::swap(executables_[0].model, executables_[1].model);
      return ending::done;
    case action::synchronize: return open_ ? spoil() : ending::done;
  }
  return ending::done;
}

std::vector<std::uint32_t> state_machine::cells_of_the_device() {
  api_.abandon_capture(stream_ref{stream_}.id());
  return fetched(stream_, device_cells_.all());
}

}  // namespace reprise::test
