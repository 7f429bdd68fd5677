#include "scenarios/grad_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <utility>

namespace reprise::scenarios {

// Frames in the order of their captures. The scratch of one may lie in what later ones keep.
struct grad_model::pool {
  struct replayed {
    int index;
    std::uint64_t at;
  };
  std::vector<replayed> replays;
  std::vector<std::weak_ptr<frame>> frames;
  bool is_closed = false;  // a backward was captured: frames that come now have their own

  bool is_empty() const {
    return std::ranges::all_of(frames, [](const auto& one) { return one.expired(); });
  }
};

// One forward that may have a backward.
struct grad_model::owner {
  int op = 0;
  std::shared_ptr<frame> in;  // null: it ran eagerly
  eager_cause cause{};
  std::uint64_t ticket = 0;
  bool is_done = false;  // a backward has run
};

struct grad_model::frame {
  std::shared_ptr<pool> of;
  int index = 0;
  bool revokes = true;  // its scratch does not lie apart, as that of an op with slots does
  key made_for;
  std::weak_ptr<owner> who;
  std::uint64_t ticket = 0;  // of the owner; 0: none, or it was used up
  std::uint64_t last = 0;    // forward
  // Its backward's recording.
  bool has_backward = false;
  matrix_precision products{};
  bool inputs = false;  // whether it forms their gradients
  bool by_memory = false;
};

struct grad_model::op {
  int index = 0;
  std::optional<bool> home;  // the stream of the first call; true: the other one
  std::vector<std::shared_ptr<frame>> own;
  struct used {
    std::shared_ptr<frame> in;
    std::size_t slot;
    bool is_new;  // another op's
  };
  std::map<group, used> in_regions;
  grad_counts counts;
};

struct grad_model::open_region {
  std::map<group, std::vector<int>> taken;  // which op has which slot; -1: nobody
};

struct grad_model::way {
  std::optional<eager_cause> cause{};
  std::shared_ptr<frame> in{};  // null: it is captured
  op::used* used = nullptr;     // in a region
  std::size_t slot = 0;         // likewise
  bool in_region = false;
};

// The state that a forward returned: in its frame, or copied.
struct grad_model::remembered {
  std::weak_ptr<frame> in;
  std::uint64_t ticket = 0;
  bool is_copied = false;
};

namespace {

int slots_of(const scheduled_op& op) {
  const slots* const several = std::get_if<slots>(&op.options.conflict);
  return several != nullptr ? several->count : 1;
}

}  // namespace

grad_model::grad_model(const grad_schedule& of, model_slip slip) : of_{of}, slip_{slip} {
  for (int i = 0; i < static_cast<int>(of.ops.size()); ++i) ops_.emplace_back().index = i;
}

grad_model::~grad_model() = default;

const scheduled_op& grad_model::options(const op& of) const {
  return of_.ops[static_cast<std::size_t>(of.index)];
}

grad_model::key grad_model::key_of(const scheduled& call) const {
  const bool is_joined = of_.ops[static_cast<std::size_t>(call.op)].kind == op_kind::joined;
  const bool alone = is_joined && call.alone;
  return {call.rows, alone, call.on_host && !alone, call.in_force.products, call.in_force.casts};
}

// A replay of an earlier frame of its pool has come since.
bool grad_model::is_void(const frame& one) const {
  if (slip_ == model_slip::forgets_the_pool) return false;
  return std::ranges::any_of(one.of->replays, [&](const pool::replayed& r) {
    return r.index < one.index && r.at > one.ticket;
  });
}

bool grad_model::is_owned_by(const frame& one, const owner& asked) const {
  return one.ticket != 0 && one.ticket == asked.ticket && !is_void(one);
}

bool grad_model::owes(const frame& one) const {
  const std::shared_ptr<owner> pending = one.who.lock();
  return pending != nullptr && is_owned_by(one, *pending) && !pending->is_done;
}

bool grad_model::may_capture(const op& by, const key& asked) const {
  std::set<key> captured_keys;
  for (const auto& one : by.own) captured_keys.insert(one->made_for);
  for (const auto& [of, one] : by.in_regions) captured_keys.insert(one.in->made_for);
  return captured_keys.contains(asked) ||
         static_cast<int>(captured_keys.size()) < options(by).options.keys;
}

bool grad_model::home_of(op& by, const scheduled& call) {
  if (!by.home) by.home = call.elsewhere;
  return *by.home;
}

grad_model::way grad_model::find_way(op& by, const scheduled& call) {
  const bool home = home_of(by, call);
  if (call.suspended) return {.cause = eager_cause::suspended};
  const key asked = key_of(call);
  const scheduled_op& says = options(by);
  if (says.work != 0 && !regions_.empty())
    return find_in_region(by, {home, says.kind, says.work, says.options.returned, asked});

  std::vector<std::shared_ptr<frame>> matching;
  std::ranges::copy_if(by.own, std::back_inserter(matching),
                       [&](const auto& one) { return one->made_for == asked; });
  for (const auto& one : matching) {
    if (!owes(*one)) return {.in = one};
  }
  if (matching.empty() && !may_capture(by, asked)) return {.cause = eager_cause::key};
  if (static_cast<int>(matching.size()) < slots_of(says)) return {};
  if (std::holds_alternative<hold>(says.options.conflict)) return {.cause = eager_cause::hold};
  return {.in = *std::ranges::min_element(matching, {}, [](const auto& one) { return one->last; })};
}

// In the innermost region each op of a work has a slot of its own there, and finds in it whatever
// frame is there.
grad_model::way grad_model::find_in_region(op& by, const group& of) {
  const auto known = by.in_regions.find(of);
  if (known == by.in_regions.end() && !may_capture(by, std::get<key>(of))) {
    return {.cause = eager_cause::key};
  }
  std::vector<int>& taken = regions_.back().taken[of];
  const auto is_free = [&](std::size_t slot) {
    return slot >= taken.size() || taken[slot] == -1 || taken[slot] == by.index;
  };
  std::size_t slot = 0;
  if (const auto mine = std::ranges::find(taken, by.index); mine != taken.end()) {
    slot = static_cast<std::size_t>(mine - taken.begin());
  } else if (known != by.in_regions.end() && is_free(known->second.slot)) {
    slot = known->second.slot;
  } else {
    while (!is_free(slot)) ++slot;
  }
  if (taken.size() <= slot) taken.resize(slot + 1, -1);
  taken[slot] = by.index;

  std::vector<std::weak_ptr<frame>>& all = groups_[of];
  if (all.size() <= slot) all.resize(slot + 1);
  const std::shared_ptr<frame> there = all[slot].lock();
  if (there == nullptr) return {.slot = slot, .in_region = true};
  op::used& used = known == by.in_regions.end()
                       ? by.in_regions.emplace(of, op::used{there, slot, true}).first->second
                       : known->second;
  if (used.in != there) used = {there, slot, true};
  if (owes(*there) && std::holds_alternative<hold>(options(by).options.conflict)) {
    return {.cause = eager_cause::hold};
  }
  return {.in = there, .used = &used};
}

std::shared_ptr<grad_model::frame> grad_model::captured(op& by, const key& asked) {
  auto made = std::make_shared<frame>();
  std::shared_ptr<pool>& shared = shared_[*by.home ? 1 : 0];
  if (shared != nullptr && shared->is_empty()) shared = nullptr;
  if (shared == nullptr) shared = std::make_shared<pool>();
  made->of = shared->is_closed ? std::make_shared<pool>() : shared;
  made->index = static_cast<int>(made->of->frames.size());
  made->of->frames.push_back(made);
  made->revokes = slots_of(options(by)) == 1;
  made->made_for = asked;
  ++by.counts.forward_capture;
  return made;
}

void grad_model::replay(frame& in, const std::shared_ptr<owner>& now) {
  if (in.revokes) in.of->replays.push_back({in.index, ++time_});
  now->ticket = in.ticket = in.last = ++time_;
  in.who = now;
}

ran grad_model::forward(const scheduled& call) {
  op& by = ops_[static_cast<std::size_t>(call.op)];
  const auto now = std::make_shared<owner>();
  now->op = call.op;
  tickets_[call.id] = now;
  const way found = find_way(by, call);
  if (found.cause) {
    now->cause = *found.cause;
    ++by.counts.eager_forward[static_cast<std::size_t>(*found.cause)];
    states_[call.id] = {{}, 0, true};
    return ran::eager;
  }
  now->in = found.in;
  if (found.in == nullptr) {
    const key asked = key_of(call);
    now->in = captured(by, asked);
    now->ticket = now->in->ticket = now->in->last = ++time_;
    now->in->who = now;
    if (found.in_region) {
      const scheduled_op& says = options(by);
      const group of{*by.home, says.kind, says.work, says.options.returned, asked};
      groups_[of][found.slot] = now->in;
      by.in_regions.insert_or_assign(of, op::used{now->in, found.slot, false});
    } else {
      by.own.push_back(now->in);
    }
  } else {
    replay(*now->in, now);
    const bool is_shared = found.used != nullptr && found.used->is_new;
    ++(is_shared ? by.counts.forward_shared : by.counts.forward_replay);
    if (is_shared) found.used->is_new = false;
  }
  states_[call.id] = {now->in, now->ticket, false};
  return found.in == nullptr ? ran::captured : ran::replayed;
}

void grad_model::infer(const scheduled& call) {
  op& by = ops_[static_cast<std::size_t>(call.op)];
  home_of(by, call);
  ++by.counts.inference;
}

ran grad_model::backward(const scheduled& call) {
  const std::shared_ptr<owner> now = tickets_.at(call.id);
  op& by = ops_[static_cast<std::size_t>(now->op)];
  now->is_done = true;
  const auto eagerly = [&](eager_cause cause) {
    ++by.counts.eager_backward[static_cast<std::size_t>(cause)];
    return ran::eager;
  };
  if (now->in == nullptr) {
    home_of(by, call);
    return eagerly(now->cause);
  }
  if (call.suspended) return eagerly(eager_cause::suspended);
  frame& in = *now->in;
  if (!is_owned_by(in, *now)) {
    ++by.counts.stale_replay;
    if (in.ticket == now->ticket && in.ticket != 0) ++by.counts.stale_by_pool;
    replay(in, now);
  }
  in.ticket = 0;
  const bool by_memory = options(by).kind == op_kind::remembering && call.by_memory;
  if (in.has_backward) {
    if (in.products != call.in_force.products) return eagerly(eager_cause::precision);
    const bool fits = in.by_memory == by_memory && (in.inputs || !call.inputs);
    if (!fits) return eagerly(eager_cause::key);
    ++by.counts.backward_replay;
    return ran::replayed;
  }
  in.has_backward = true;
  in.products = call.in_force.products;
  in.inputs = call.inputs;
  in.by_memory = by_memory;
  in.of->is_closed = true;
  ++by.counts.backward_capture;
  return ran::captured;
}

void grad_model::drop(int id) {
  tickets_.erase(id);
}

bool grad_model::recall(int id) {
  remembered& of = states_.at(id);
  if (of.is_copied) return true;
  const std::shared_ptr<frame> in = of.in.lock();
  if (in == nullptr) return false;
  owner asked;
  asked.ticket = of.ticket;
  of.is_copied = is_owned_by(*in, asked);
  return of.is_copied;
}

void grad_model::reset() {
  for (op& one : ops_) {
    one.own.clear();
    one.in_regions.clear();
    one.home.reset();
  }
  groups_.clear();
  for (open_region& one : regions_) one.taken.clear();
  for (std::shared_ptr<pool>& one : shared_) one = nullptr;
}

void grad_model::begin(const scheduled&) {
  regions_.emplace_back();
}

void grad_model::end() {
  regions_.pop_back();
}

const grad_counts& grad_model::counts(int of) const {
  return ops_[static_cast<std::size_t>(of)].counts;
}

std::string grad_model::difference(int of, const grad_counts& counted) const {
  const grad_counts& says = counts(of);
  const auto differs = [](std::string_view name, std::uint64_t is, std::uint64_t should_be) {
    return fmt::format("{} is {}, and the model says {}", name, is, should_be);
  };
  const std::array<std::pair<std::string_view, std::uint64_t grad_counts::*>, 8> all{
      {{"forward_capture", &grad_counts::forward_capture},
       {"forward_shared", &grad_counts::forward_shared},
       {"forward_replay", &grad_counts::forward_replay},
       {"backward_capture", &grad_counts::backward_capture},
       {"backward_replay", &grad_counts::backward_replay},
       {"stale_replay", &grad_counts::stale_replay},
       {"stale_by_pool", &grad_counts::stale_by_pool},
       {"inference", &grad_counts::inference}}};
  for (const auto& [name, count] : all) {
    if (counted.*count != says.*count) return differs(name, counted.*count, says.*count);
  }
  for (std::size_t i = 0; i < eager_causes; ++i) {
    const std::string_view cause = name_of(static_cast<eager_cause>(i));
    if (counted.eager_forward[i] != says.eager_forward[i]) {
      return differs(fmt::format("eager forward ({})", cause), counted.eager_forward[i],
                     says.eager_forward[i]);
    }
    if (counted.eager_backward[i] != says.eager_backward[i]) {
      return differs(fmt::format("eager backward ({})", cause), counted.eager_backward[i],
                     says.eager_backward[i]);
    }
  }
  return {};
}

}  // namespace reprise::scenarios
