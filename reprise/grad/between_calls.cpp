// What is asked of a graphed op between its calls: to let go of what was lent or owed, to wait, and
// to tell somebody of its marks.
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/grad/graphed_core.hpp"

namespace reprise {

namespace {

using observer_list = std::vector<std::shared_ptr<mark_observer>>;

// Never destroyed, as ops of static storage are not. `any` is what a call asks first.
struct process_observers {
  std::mutex guard;
  observer_list all;
  std::atomic<bool> any{false};
};
process_observers& everybody() {
  static auto* const those = new process_observers;
  return *those;
}

void add_once(observer_list& to, const std::shared_ptr<mark_observer>& one) {
  if (one != nullptr && std::ranges::find(to, one) == to.end()) to.push_back(one);
}

}  // namespace

void graphed_core::forget(const forward_ticket& ticket) {
  const call_here alone{*this};
  const std::lock_guard held{turn_};
  check_ticket(ticket);
  forward_call& call = *ticket.call();
  if (call.in == nullptr || REPRISE_MUTANT(what_is_forgotten_is_still_owed)) return;
  const std::lock_guard turn{call.in->in->turn};
  call.is_done = true;
}

void graphed_core::move_live_gradients(site at) {
  const call_here alone{*this};
  const std::lock_guard held{turn_};
  if (frames_.empty() || options_.returned != gradients::moved || at.stream.capturing()) return;
  const std::lock_guard turn{home_->turn};
  for (const used_frame& used : frames_) {
    if (used.in->backward && used.in->backward->made) used.in->backward->made->move_held_aside(at);
  }
}

void graphed_core::drain(std::source_location place) {
  const call_here alone{*this};
  const std::lock_guard held{turn_};
  if (!home_) return;
  const std::lock_guard turn{home_->turn};
  std::exception_ptr first;
  const auto tried = [&](auto&& wait) {
    try {
      wait();
    } catch (const error&) {
      if (first == nullptr) first = std::current_exception();
    }
  };
  for (const used_frame& used : frames_) {
    const frame& one = *used.in;
    if (one.forward) tried([&] { one.forward->synchronize(place); });
    if (one.backward && one.backward->made) {
      tried([&] { one.backward->made->synchronize(place); });
    }
  }
  if (inference_ && inference_->recordings() != 0) tried([&] { inference_->drain(place); });
  if (first != nullptr) std::rethrow_exception(first);
}

void graphed_core::observe(std::shared_ptr<mark_observer> observer) {
  const auto held = own_turn();
  add_once(observers_, observer);
}

void graphed_core::stop_observing() {
  const auto held = own_turn();
  observers_.clear();
}

void graphed_core::observe_all(std::shared_ptr<mark_observer> observer) {
  process_observers& those = everybody();
  const std::lock_guard held{those.guard};
  add_once(those.all, observer);
  those.any.store(!those.all.empty(), std::memory_order_release);
}

void graphed_core::stop_observing_all() {
  process_observers& those = everybody();
  const std::lock_guard held{those.guard};
  those.all.clear();
  those.any.store(false, std::memory_order_release);
}

observer_list graphed_core::observers_of_all() {
  process_observers& those = everybody();
  if (!those.any.load(std::memory_order_acquire)) return {};
  const std::lock_guard held{those.guard};
  return those.all;
}

// In the op's turn.
observer_list graphed_core::watching() const {
  observer_list told = observers_;
  for (const auto& one : observers_of_all()) add_once(told, one);
  return told;
}

bool graphed_core::is_observed() const {
  const auto held = own_turn();
  return !watching().empty();
}

}  // namespace reprise
