// What runs next: works, as the temper of the seed says, and host threads.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/sim/adversary.hpp"

namespace reprise::sim {

namespace {

// A thread that has let others run so often in vain waits for what will never be.
constexpr std::uint64_t most_idle_pauses = 200'000;  // also the milliseconds of the longest wait

}  // namespace

// A thread that is not known runs beside the one that has the turn, so all it does is leave word.
void adversary::require_known(std::string_view call, place from) {
  if (turns_.number() != 0) return;
  const std::string text = fmt::format(
      "{} ({}) was called by a thread that the simulator does not know, so the seed "
      "would not say when it runs; start it as a host_thread",
      call, place_text(from));
  leave_word(text);
  throw usage_error{fmt::format("{}: {}", name_, text)};
}

void adversary::leave_word(const std::string& text) noexcept {
  const std::lock_guard lock{strangers_guard_};
  if (stranger_.empty()) stranger_ = text;
  a_stranger_came_ = true;
}

// In calls that cannot fail. Nothing may be done then, so what was to go stays.
bool adversary::is_stranger(std::string_view call) noexcept {
  if (turns_.number() != 0) return false;
  leave_word(
      fmt::format("{} was called by a thread that the simulator does not know; start it as "
                  "a host_thread",
                  call));
  return true;
}

void adversary::note_strangers() {
  if (!a_stranger_came_.exchange(false)) return;
  const std::lock_guard lock{strangers_guard_};
  notes_.found(finding_kind::misuse, std::exchange(stranger_, {}));
}

// The first finding is the failure of the call that meets it. One is enough to fail a run; further
// ones would only break up how it is taken down.
void adversary::tell_findings(std::string_view call, place from) {
  if (!options_.stops_at_findings || told_ || std::uncaught_exceptions() != 0) return;
  const std::string text = notes_.take_finding();
  if (text.empty()) return;
  told_ = true;
  throw device_error{{call, name_, from}, text};
}

void adversary::enter(std::string_view call, place from) {
  require_known(call, from);
  note_strangers();
  attend();
  if (inside_ != nullptr && inside_thread_ == turns_.number()) {
    notes_.found(finding_kind::misuse,
                 fmt::format("a host call, {}, calls {}, which waits for its own stream on a GPU",
                             text_of(*inside_, inside_->what->borrow()), call));
    throw device_error{{call, name_, from},
                       "it was called from a host call of this device; do it on a thread"};
  }
  tell_findings(call, from);
  if (turns_.count() > 1 && dice_.chance(temper_.hand_overs)) turns_.hand_over(dice_);
  while (dice_.chance(temper_.eagerness) && step()) {
  }
  tell_findings(call, from);
}

bool adversary::all_done(const std::vector<item_ref>& items) const {
  return std::ranges::all_of(items, [](const item_ref& one) { return one->done; });
}

void adversary::fail_deadlocked(const std::string& what, std::string_view call, place from) {
  notes_.found(finding_kind::deadlock, what);
  tell_findings(call, from);
  throw device_error{{call, name_, from}, "it waits for what will never be done"};
}

// The host has seen that all of this is over.
void adversary::passed(const mark& at) {
  known_.join(at.clock);
  for (const item_ref& one : at.tail) host_time_ = std::max(host_time_, one->end);
}

// Whether the event has happened; a caller that asks again and again sees it happen.
bool adversary::happened(event_id event, place from) {
  const auto found = marks_.find(event);
  if (found == marks_.end()) return true;
  if (!all_done(found->second.tail) && dice_.chance(64)) {
    step();
    tell_findings("finished", from);
  }
  if (!all_done(found->second.tail)) return false;
  passed(found->second);
  return true;
}

void adversary::finish(event_id event, place from) {
  const auto found = marks_.find(event);
  if (found == marks_.end()) return;
  const mark at = found->second;
  wait_for([&] { return all_done(at.tail); }, at.tail, "synchronize event", from);
  passed(at);
}

void adversary::finish(stream_id stream, place from) {
  bury();
  const auto& on = lines_.at(stream);
  notes_.add(fmt::format("thread {} waits for stream {} ({})", turns_.number(), on->number,
                         place_text(from)));
  const mark at{on->tail, on->clock};
  wait_for([&] { return all_done(at.tail); }, at.tail, "synchronize", from);
  passed(at);
  bury();
}

// Runs one ready work, of the needed ones where some are named. False: there is none.
bool adversary::step(const item_set* needed) {
  if (inside_ != nullptr) return false;
  std::vector<std::size_t> can;
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (ready_[i]->held) continue;
    if (needed != nullptr && !needed->contains(ready_[i].get())) continue;
    can.push_back(i);
  }
  if (can.empty()) return false;
  const auto older = [&](std::size_t a, std::size_t b) {
    return ready_[a]->number < ready_[b]->number;
  };
  const auto lower = [&](std::size_t a, std::size_t b) {
    const std::uint64_t rank_a = ready_[a]->on ? ready_[a]->on->rank : 0;
    const std::uint64_t rank_b = ready_[b]->on ? ready_[b]->on->rank : 0;
    return rank_a != rank_b ? rank_a < rank_b : older(a, b);
  };
  std::size_t chosen = can.front();
  switch (temper_.next) {
    case pick::any: chosen = can[dice_.below(can.size())]; break;
    case pick::oldest: chosen = *std::ranges::min_element(can, older); break;
    case pick::newest: chosen = *std::ranges::max_element(can, older); break;
    case pick::by_rank: chosen = *std::ranges::min_element(can, lower); break;
  }
  const item_ref one = ready_[chosen];
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  // Streams take turns in being favoured.
  if (one->on && dice_.chance(16)) one->on->rank = dice_.next();
  if (can.size() > 1) reached("sim: several works were ready at once");
  execute(one);
  return true;
}

// `items`: what has to be done for it. Others run meanwhile.
void adversary::wait_for(const std::function<bool()>& done, const std::vector<item_ref>& items,
                         std::string_view call, place from) {
  if (done()) return;
  item_set needed;
  const bool all_alike = !temper_.only_needed;
  if (!all_alike) {
    std::vector<const item*> left;
    for (const item_ref& one : items) left.push_back(one.get());
    while (!left.empty()) {
      const item* const one = left.back();
      left.pop_back();
      if (one->done || !needed.insert(one).second) continue;
      for (const item_ref& before : one->before) left.push_back(before.get());
    }
  }
  turns_.waits_for(&done);
  while (!done()) {
    if (turns_.count() > 1 && dice_.chance(temper_.hand_overs) && turns_.hand_over(dice_)) {
      reached("sim: another thread went on while one waited");
      continue;
    }
    if (step(all_alike ? nullptr : &needed)) continue;
    if (turns_.count() > 1 && turns_.hand_over(dice_)) continue;
    turns_.waits_for(nullptr);
    std::string held;
    for (const auto& [id, on] : lines_) {
      if (on->hold) held += fmt::format("{}stream {}", held.empty() ? "" : ", ", on->number);
    }
    fail_deadlocked(fmt::format("{} ({}) waits, and nothing can run{}", call, place_text(from),
                                held.empty() ? "" : "; held: " + held),
                    call, from);
  }
  turns_.waits_for(nullptr);
  tell_findings(call, from);
}

std::uint64_t adversary::start(std::function<void()> body) {
  require_known("start a thread", place::current());
  ++progress_;
  const std::uint64_t made = turns_.start(std::move(body));
  notes_.add(fmt::format("thread {} starts thread {}", turns_.number(), made));
  return made;
}

void adversary::join(std::uint64_t thread) {
  const std::function<bool()> done = [&] { return turns_.ended(thread); };
  turns_.waits_for(&done);
  std::uint64_t in_vain = 0;
  while (!done()) {
    // What the other waits for may be work that nobody has run yet, or our turn in its loop.
    const std::uint64_t before = progress_;
    if (turns_.hand_over(dice_) || step()) {
      if (progress_ != before) in_vain = 0;
    }
    // Those who only pause fail by themselves; then it is they who wait for us.
    if (++in_vain > 2 * most_idle_pauses) break;
  }
  turns_.waits_for(nullptr);
  if (!done()) {
    fail_deadlocked(fmt::format("thread {} waits for thread {} to end, which never does",
                                turns_.number(), thread),
                    "join", place::current());
  }
  notes_.add(fmt::format("thread {} has joined thread {}", turns_.number(), thread));
}

void adversary::pause() {
  require_known("pause", place::current());
  ++pauses_;
  bury();
  const std::uint64_t before = progress_;
  if (dice_.chance(128)) step();
  if (turns_.count() > 1) turns_.hand_over(dice_);
  if (progress_ == before && !step()) ++idle_pauses_;
  if (idle_pauses_ <= most_idle_pauses) return;
  idle_pauses_ = 0;
  fail_deadlocked(
      fmt::format("thread {} waits in wait_until for what never comes, and nothing can run",
                  turns_.number()),
      "pause", place::current());
}

void adversary::yield(void* self) {
  auto& me = *static_cast<adversary*>(self);
  if (me.turns_.number() == 0) return;
  // Who has the mutex may wait for work that nobody has run yet; and two who wait for it would hand
  // over to each other alone.
  if (me.dice_.chance(128)) me.step();
  if (!me.turns_.hand_over(me.dice_)) me.step();
}

bool adversary::takes(std::string_view) {
  return options_.takes_fault_points && turns_.number() != 0 && dice_.chance(temper_.faults / 2);
}

void adversary::close_device(const std::string& held) noexcept {
  try {
    note_strangers();
    const std::size_t own = caller_ == 0 ? 1 : 2;
    if (turns_.count() > own) {
      notes_.found(finding_kind::leak,
                   fmt::format("{} threads were not joined before the device was closed",
                               turns_.count() - own));
    }
    for (const auto& [id, on] : lines_) let_go(id);
    while (turns_.count() > own && (step() || turns_.hand_over(dice_))) {
    }
    while (!pending_.empty() && (step() || turns_.hand_over(dice_))) {
    }
    caller_ends_ = true;
    while (turns_.count() > 1 && turns_.hand_over(dice_)) {
    }
    bury();
    std::string left = held;
    if (memory_.blocks() != 0) {
      left += fmt::format("{}{} bytes in {} blocks", left.empty() ? "" : ", ", memory_.held(),
                          memory_.blocks());
    }
    if (!left.empty()) {
      notes_.found(finding_kind::leak, "the device was closed while these were held: " + left);
    }
    if (!options_.into) {
      for (std::string text = notes_.take_finding(); !text.empty(); text = notes_.take_finding()) {
        report_error(fmt::format("{}: {}", name_, text));
      }
    }
  } catch (const std::exception& failure) {
    report_error(failure.what());
  }
}

}  // namespace reprise::sim
