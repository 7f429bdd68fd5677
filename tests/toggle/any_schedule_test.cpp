// Any schedule of sets, over any mix of modes, runs exactly what is on: rapidcheck makes schedules
// of sessions, sets, launches on two streams, fresh executables and clears, and shortens those that
// fail.
//
// RC_PARAMS="seed=... max_success=..." asks for others, or for more.
#include <rapidcheck.h>

#include <array>
#include <cstdlib>
#include <list>

#include "reprise/device/host_thread.hpp"
#include "tests/support/order.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

constexpr std::size_t count = 4;  // two launches are eight digits

enum class doing : std::uint8_t { set, launch, in_flight, anew, bind_anew, capture, clear };

struct action {
  doing what = doing::set;
  std::uint8_t of = 0;  // which session
  std::uint8_t value = 0;
};

std::ostream& operator<<(std::ostream& out, const action& one) {
  constexpr std::array names{"set", "launch", "in flight", "anew", "bind anew", "capture", "clear"};
  return out << names[static_cast<std::size_t>(one.what)] << ' ' << int{one.of} << ' '
             << int{one.value};
}

switch_set set_of(std::uint8_t bits) {
  std::vector<switch_key> keys;
  for (std::size_t i = 0; i < count; ++i) {
    if ((bits >> i & 1) != 0) keys.push_back(key(i));
  }
  return switch_set{std::move(keys)};
}

// One session with the executables of its graphs, and what should be on.
class user {
 public:
  user(device_ref dev, stream_ref s, pool& memory, toggle_mode mode)
      : s_{s}, x_{memory, 1, s}, mode_{mode}, session_{dev, {.mode = mode, .variant_bytes = 4096}} {
    capture_again();
  }

  void capture_again() {
    if (mode_ == toggle_mode::device) {
      driven_.emplace_back(record_driven(session_, s_, x_, count, count));
      session_.bind(driven_.back());
    } else {
      graphs_.push_back(record(session_, s_, x_, count));
      steps_.push_back(graphs_.back().made.instantiate(s_));
      session_.bind(graphs_.back().made, steps_.back());
    }
  }
  void instantiate_again(bool binds) {
    if (mode_ == toggle_mode::device) return;
    steps_.push_back(graphs_.back().made.instantiate(s_));
    if (binds) session_.bind(graphs_.back().made, steps_.back());
  }
  void set(const switch_set& wanted) {
    s_.synchronize();
    session_.set(wanted);
    wanted_ = wanted;
  }
  // What was switched off is on again in whatever was bound; false where it is not.
  bool clear() {
    session_.clear();
    wanted_ = all_but(count, {});
    bool all = true;
    for (std::uint8_t i = 0; i < steps_.size() + driven_.size(); ++i) {
      const auto ran = launch(i);
      all = all && ran.first == ran.second;
    }
    graphs_.clear();
    steps_.clear();
    driven_.clear();
    capture_again();
    return all;
  }
  // What ran, and what should have.
  std::pair<std::int32_t, std::int32_t> launch(std::uint8_t which) {
    fill(s_, write<std::int32_t>{x_}, 0);
    enqueue_on(s_, which);
    return {read_back(s_, x_).front(), digits_in(count, wanted_)};
  }
  // Two launches of one executable on two streams, with another set for the second while the first
  // may run: nobody but the device and the session sees to their order.
  std::pair<std::int32_t, std::int32_t> launch_in_flight(stream_ref beside, std::uint8_t which) {
    fill(s_, write<std::int32_t>{x_}, 0);
    enqueue_on(s_, which);
    std::int32_t expected = digits_in(count, wanted_);
    if (mode_ != toggle_mode::host_eager) {
      wanted_ = set_of(static_cast<std::uint8_t>(which >> 2));
      session_.set(wanted_);
    }
    enqueue_on(beside, which);
    order(beside, s_);
    for (std::size_t i = 0; i < wanted_.size(); ++i) expected *= 10;
    return {read_back(s_, x_).front(), expected + digits_in(count, wanted_)};
  }

 private:
  void enqueue_on(stream_ref on, std::uint8_t which) {
    if (mode_ == toggle_mode::device) {
      std::next(driven_.begin(), which % driven_.size())->launch(on);
    } else {
      std::next(steps_.begin(), which % steps_.size())->launch(on);
    }
  }

  stream_ref s_;
  digits x_;
  toggle_mode mode_;
  toggle_session session_;
  switch_set wanted_ = all_but(count, {});
  std::list<recorded> graphs_;
  std::list<executable> steps_;
  std::list<fixed_executable> driven_;
};

constexpr std::array all_modes{toggle_mode::automatic, toggle_mode::variants,
                               toggle_mode::host_lazy, toggle_mode::host_eager,
                               toggle_mode::device};

void expect_what_is_on(device_ref dev, const std::vector<action>& schedule, std::size_t first) {
  const stream s{dev};
  const stream beside{dev};
  pool memory{dev, "test"};
  std::list<user> users;
  for (std::size_t i = 0; i < 3; ++i) {
    users.emplace_back(dev, s, memory, all_modes[(first + 2 * i) % all_modes.size()]);
  }
  for (const action& one : schedule) {
    user& who = *std::next(users.begin(), one.of % users.size());
    std::pair<std::int32_t, std::int32_t> ran;
    switch (one.what) {
      case doing::set: who.set(set_of(one.value)); break;
      case doing::launch: ran = who.launch(one.value); break;
      case doing::in_flight: ran = who.launch_in_flight(beside, one.value); break;
      case doing::anew: who.instantiate_again(false); break;
      case doing::bind_anew: who.instantiate_again(true); break;
      case doing::capture: who.capture_again(); break;
      case doing::clear: RC_ASSERT(who.clear()); break;
    }
    if (ran.first != ran.second) RC_LOG() << "at " << one << '\n';
    RC_ASSERT(ran.first == ran.second);
  }
  for (user& who : users) {
    const auto ran = who.launch(0);
    RC_ASSERT(ran.first == ran.second);
  }
}

constexpr int schedules = sanitized ? 20 : 150;
const bool same_schedules = [] {
  const std::string asked = "seed=7 max_size=60 max_success=" + std::to_string(schedules);
  return setenv("RC_PARAMS", asked.c_str(), 0) == 0;
}();

class any_schedule : public toggle_suite {};

}  // namespace
}  // namespace reprise::test

namespace rc {

template <>
struct Arbitrary<reprise::test::action> {
  static Gen<reprise::test::action> arbitrary() {
    using reprise::test::action;
    using reprise::test::doing;
    const auto what = gen::weightedElement<doing>({{8, doing::set},
                                                   {10, doing::launch},
                                                   {5, doing::in_flight},
                                                   {2, doing::anew},
                                                   {2, doing::bind_anew},
                                                   {2, doing::capture},
                                                   {1, doing::clear}});
    const auto any =
        gen::map(gen::inRange(0, 256), [](int v) { return static_cast<std::uint8_t>(v); });
    return gen::build<action>(gen::set(&action::what, what), gen::set(&action::of, any),
                              gen::set(&action::value, any));
  }
};

}  // namespace rc

namespace reprise::test {
namespace {

TEST_P(any_schedule, of_sets_runs_exactly_what_is_on) {
  EXPECT_TRUE(rc::check([&](const std::vector<action>& schedule) {
    expect_what_is_on(dev(), schedule, *rc::gen::inRange<std::size_t>(0, all_modes.size()));
  }));
}

// Each thread has a session, a stream and executables of its own; they meet at the gate.
TEST_P(any_schedule, of_several_threads_is_right_on_each) {
  std::list<host_thread> threads;
  for (std::size_t t = 0; t < 3; ++t) {
    threads.emplace_back(dev(), [this, t] {
      const stream own{dev()};
      const stream aside{dev()};
      pool mine{dev(), "thread"};
      user who{dev(), own, mine, all_modes[t]};
      for (std::uint8_t i = 0; i < 20; ++i) {
        if (i % 3 == 0) who.set(set_of(static_cast<std::uint8_t>(7 * i + t)));
        if (i % 7 == 6) who.instantiate_again(i % 2 == 0);
        const bool all_on = i != 13 || who.clear();
        EXPECT_TRUE(all_on);
        const auto ran = i % 5 == 4 ? who.launch_in_flight(aside, i) : who.launch(i);
        EXPECT_EQ(ran.first, ran.second) << "thread " << t << ", launch " << int{i};
      }
    });
  }
  for (host_thread& one : threads) one.join();
  EXPECT_EQ(dev().set_gate(nullptr), nullptr);
}

INSTANTIATE_TEST_SUITE_P(devices, any_schedule, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
