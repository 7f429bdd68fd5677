#include "reprise/toggle/gate_hub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <source_location>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/toggle/refusal.hpp"
#include "reprise/toggle/session_core.hpp"

namespace reprise {

gate_hub& gate_hub::of(device_ref device) {
  static std::mutex one;
  static auto* const all = new std::map<const device_state*, std::unique_ptr<gate_hub>>;
  const std::lock_guard lock{one};
  std::unique_ptr<gate_hub>& hub = (*all)[&device.state()];
  if (hub == nullptr) hub = std::make_unique<gate_hub>();
  return *hub;
}

void gate_hub::hook(session_core& session, device_ref device) {
  if (std::ranges::find(sessions_, &session) != sessions_.end()) return;
  if (sessions_.empty()) put_on(device);
  sessions_.push_back(&session);
}

// Where a gate lies over this one, it may ask this one in turn: `before` sees to that.
void gate_hub::put_on(device_ref device) {
  launch_gate* const top = device.set_gate(this);
  if (top == this) return;  // there for an executable that is never launched again
  beneath_ = top == nullptr ? nullptr : before_;
  before_ = top;
}

void gate_hub::unhook(session_core& session, device_ref device) {
  std::erase(sessions_, &session);
  if (sessions_.empty() && !has_condemned()) take_off(device);
}

// Whoever has put his own gate over this one keeps it, and this one then only passes on.
void gate_hub::take_off(device_ref device) {
  launch_gate* top = this;
  if (REPRISE_MUTANT(toggle_leaves_its_gate)) return;
  if (device.state().gate.compare_exchange_strong(top, before_)) {
    before_ = std::exchange(beneath_, nullptr);
  }
}

std::vector<std::shared_ptr<capture_stamp>> gate_hub::stamps() {
  std::vector<std::shared_ptr<capture_stamp>> alive;
  std::erase_if(stamps_, [&](const std::weak_ptr<capture_stamp>& one) {
    auto stamp = one.lock();
    if (stamp == nullptr) return true;
    alive.push_back(std::move(stamp));
    return false;
  });
  return alive;
}

void gate_hub::drop_the_gone() {
  std::erase_if(table_, [](const auto& entry) { return entry.second.alive.expired(); });
}

// Devices use the id of an executable again when it is gone: its life tells them apart.
gate_hub::known& gate_hub::at(device_ref device, executable_id executable) {
  auto found = table_.find(executable);
  if (found != table_.end() && !found->second.alive.expired()) return found->second;
  constexpr std::size_t many = 256;
  if (table_.size() % many == 0) drop_the_gone();
  auto life = std::make_shared<const char>();
  device.api().keep(executable, life);
  known& one = table_[executable];
  one = {};
  one.alive = life;
  return one;
}

std::weak_ptr<const void> gate_hub::life_of(device_ref device, executable_id executable) {
  drop_the_gone();
  return at(device, executable).alive;
}

void gate_hub::binds(executable_id executable, session_core& session, bound& as) {
  known& one = table_.at(executable);
  one.session = &session;
  one.as = &as;
  one.has = as.stamp();
  one.is_classified = true;
  one.is_released = false;
  const node_id looked_at = std::exchange(one.probed, node_id::none);
  if (!REPRISE_MUTANT(toggle_forgets_what_a_look_did)) as.is_known(looked_at, one.probed_on);
}

const session_core* gate_hub::owner_of(executable_id executable) {
  const auto found = table_.find(executable);
  return found == table_.end() || found->second.alive.expired() ? nullptr : found->second.session;
}

bound* gate_hub::bound_as(executable_id executable) {
  const auto found = table_.find(executable);
  return found == table_.end() || found->second.alive.expired() ? nullptr : found->second.as;
}

void gate_hub::forget(const bound& gone) {
  const auto found = table_.find(gone.executable());
  if (found == table_.end() || found->second.as != &gone) return;
  found->second.session = nullptr;
  found->second.as = nullptr;
}

void gate_hub::release(const bound& gone) {
  if (const auto found = table_.find(gone.executable()); found != table_.end()) {
    found->second.is_released = true;
  }
  forget(gone);
}

void gate_hub::condemn(const bound& unknown) {
  if (const auto found = table_.find(unknown.executable()); found != table_.end()) {
    found->second.is_condemned = true;
  }
}

bool gate_hub::has_condemned() const {
  return std::ranges::any_of(table_, [](const auto& entry) {
    return entry.second.is_condemned && !entry.second.alive.expired();
  });
}

namespace {

// Of somebody else's executable it is the driver that refuses a node of another graph, as an error
// like any other: one that comes twice is taken for that.
bool takes(device_ref device, executable_id executable, node_id node, bool on) {
  for (int tries = 0; tries != 2; ++tries) {
    try {
      device.api().enable(executable, node, on, std::source_location::current());
      return true;
    } catch (const usage_error&) {
      return false;
    } catch (const device_error&) {
    }
  }
  return false;
}

}  // namespace

// Executables do not say what they were made of, but they take node ids of their own graph and
// refuse all others by name. Asked once for each executable that nobody bound; of a node that is
// wanted off in a bound graph, so that the call is one that is needed anyway.
bool gate_hub::has_node(known& one, device_ref device, executable_id executable,
                        const capture_stamp& of) {
  node_id node = of.some_node();
  bool on = true;
  for (const session_core* session : sessions_) {
    if (session->number != of.session || !of.bound || session->version == 0) continue;
    const auto off = std::ranges::find_if(
        of.noted, [&](const noted_work& work) { return !work.on_in(session->wanted); });
    if (off == of.noted.end()) continue;
    node = off->node;
    on = false;
  }
  const auto here = std::source_location::current();
  if (takes(device, executable, node, on)) {
    one.probed = node;
    one.probed_on = on;
    return true;
  }
  if (of.words == nullptr) return false;
  try {
    (void)device.api().device_handle(executable, of.some_node(), here);
    return true;
  } catch (const usage_error&) {
    return false;
  }
}

// What is captured later is in no executable that is there already: once is enough.
void gate_hub::classify(known& one, device_ref device, executable_id executable) {
  for (const auto& stamp : stamps()) {
    if (!stamp->holds_works() || !has_node(one, device, executable, *stamp)) continue;
    one.has = stamp;
    break;
  }
  one.is_classified = true;
}

void gate_hub::rebind(known& one, session_core& session, executable_id executable,
                      const std::shared_ptr<capture_stamp>& stamp) {
  bound* like = nullptr;
  for (bound& other : session.bindings) {
    const bool is_whole = other.noted().size() == stamp->noted.size();
    if (other.stamp() == stamp && !other.is_driven() && is_whole) like = &other;
  }
  if (like == nullptr) refuse(session, *stamp);
  session.add(bound{session.device, executable, one.alive, like->same_works()}).noticed = true;
  ++session.counts.rebound;
}

void gate_hub::refuse(session_core& session, const capture_stamp& stamp) {
  ++session.counts.refused;
  if (stamp.session != session.number) {
    throw switch_refusal{
        refused::stale,
        fmt::format("launch: the graph of '{}' was recorded in an earlier session, and its keys "
                    "are forgotten; record it again",
                    stamp.label)};
  }
  throw switch_refusal{
      refused::unbound,
      fmt::format("launch: the executable has {} switchable works of '{}' and is not bound; call "
                  "bind(graph, executable), or record it again inside a window of this session",
                  stamp.noted.size() + stamp.counted.size(), stamp.label)};
}

void gate_hub::look_at(executable_id& may_swap, stream_ref stream) {
  known& one = at(stream.device(), may_swap);
  if (one.is_condemned) {
    throw switch_refusal{
        refused::unknown_state,
        "launch: switching nodes of the executable failed and so did switching them back, so what "
        "is on in it is not known; destroy it and instantiate its graph anew"};
  }
  if (one.as == nullptr && !one.is_classified) classify(one, stream.device(), may_swap);
  if (one.as == nullptr) {
    const auto stamp = one.has.lock();
    if (stamp == nullptr) return;
    const auto of = std::ranges::find(sessions_, stamp->owner,
                                      [](const session_core* s) { return s->options.owner; });
    if (of == sessions_.end()) return;
    session_core& session = **of;
    if (session.options.exempt && session.options.exempt(may_swap)) return;
    if (stamp->session != session.number || !stamp->bound || one.is_released) {
      if (REPRISE_MUTANT(toggle_guard_lets_unbound_graphs_run)) return;
      refuse(session, *stamp);
    }
    rebind(one, session, may_swap, stamp);
  }
  may_swap = one.session->prepare(*one.as, stream);
}

namespace {

// Whose turn it is on this thread: a gate that was put over a hub passes on to it.
thread_local const gate_hub* hub_that_asks = nullptr;

}  // namespace

verdict gate_hub::ask(launch_gate* other, executable_id& may_swap, stream_ref stream) const {
  if (other == nullptr || REPRISE_MUTANT(toggle_gate_passes_nothing_on)) return verdict::launch;
  const gate_hub* const outer = std::exchange(hub_that_asks, this);
  try {
    const verdict said = other->before(may_swap, stream);
    hub_that_asks = outer;
    return said;
  } catch (...) {
    hub_that_asks = outer;
    throw;
  }
}

verdict gate_hub::before(executable_id& may_swap, stream_ref stream) {
  std::unique_lock lock{guard};
  const bool again = hub_that_asks == this;
  launch_gate* const first = again ? beneath_ : before_;
  if (first != nullptr) {
    lock.unlock();
    if (ask(first, may_swap, stream) == verdict::refuse) return verdict::refuse;
    lock.lock();
  }
  if (!again && (!sessions_.empty() || has_condemned())) look_at(may_swap, stream);
  return verdict::launch;
}

}  // namespace reprise
