#include "reprise/sim/turns.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace reprise::sim {

namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

// Which devices know this thread, and as what. A thread may use several devices.
struct known_as {
  std::uint64_t serial;
  void* host;
};
thread_local std::vector<known_as> known;

void forget(std::uint64_t serial) {
  std::erase_if(known, [&](const known_as& k) { return k.serial == serial; });
}

}  // namespace

turns::turns(std::function<void()> prepare, std::function<void()> clean)
    : serial_{next_serial()}, prepare_{std::move(prepare)}, clean_{std::move(clean)} {
  hosts_.push_back(std::make_unique<host>());
  has_turn_ = hosts_.back().get();
  has_turn_->number = ++last_;
  known.push_back({serial_, has_turn_});
}

// Threads that nobody joined have nothing to call any more; they are let run to their end.
turns::~turns() {
  forget(serial_);
  while (hosts_.size() > 1) {
    std::unique_lock lock{guard_};
    give_to(*hosts_.back(), lock);
  }
  for (std::thread& t : ended_) t.join();
}

turns::host* turns::self() const {
  for (const known_as& k : known) {
    if (k.serial == serial_) return static_cast<host*>(k.host);
  }
  return nullptr;
}

std::uint64_t turns::number() const {
  const host* const me = self();
  return me == nullptr ? 0 : me->number;
}

std::uint64_t turns::start(std::function<void()> body) {
  auto fresh = std::make_unique<host>();
  host& made = *fresh;
  made.number = ++last_;
  hosts_.push_back(std::move(fresh));
  made.thread = std::thread{[this, &made, body = std::move(body)] { run(made, body); }};
  return made.number;
}

void turns::run(host& me, const std::function<void()>& body) {
  {
    std::unique_lock lock{guard_};
    me.wake.wait(lock, [&] { return has_turn_ == &me; });
  }
  known.push_back({serial_, &me});
  prepare_();
  body();
  clean_();
  forget(serial_);
  // The first that can go on; where none can, the first of all looks what is to be done.
  const std::lock_guard lock{guard_};
  ended_.push_back(std::move(me.thread));
  std::erase_if(hosts_, [&](const std::unique_ptr<host>& h) { return h.get() == &me; });
  const auto next = std::ranges::find_if(hosts_, [](const auto& h) { return can_go(*h); });
  has_turn_ = (next != hosts_.end() ? *next : hosts_.front()).get();
  has_turn_->wake.notify_one();
}

bool turns::can_go(const host& other) {
  return other.waits_for == nullptr || (*other.waits_for)();
}

bool turns::ended(std::uint64_t number) const {
  return std::ranges::none_of(hosts_, [&](const auto& h) { return h->number == number; });
}

void turns::waits_for(const std::function<bool()>* condition) {
  if (host* const me = self()) me->waits_for = condition;
}

bool turns::hand_over(dice& choice) {
  host* const me = self();
  std::vector<host*> others;
  for (const auto& h : hosts_) {
    if (h.get() != me && can_go(*h)) others.push_back(h.get());
  }
  if (others.empty()) return false;
  std::unique_lock lock{guard_};
  give_to(*others[choice.below(others.size())], lock);
  return true;
}

void turns::hand_on(dice& choice) {
  if (hand_over(choice)) return;
  std::unique_lock lock{guard_};
  if (hosts_.front().get() != has_turn_) give_to(*hosts_.front(), lock);
}

void turns::give_to(host& other, std::unique_lock<std::mutex>& lock) {
  host* const me = has_turn_;
  has_turn_ = &other;
  other.wake.notify_one();
  me->wake.wait(lock, [&] { return has_turn_ == me; });
}

}  // namespace reprise::sim
