// Any calls in any order, on one thread and on two: the device does what a model says, call by call
// (rapidcheck makes the orders and shortens those that fail).
//
// RC_PARAMS="seed=… max_success=…" asks for others, or for more.
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/sim/state_machine.hpp"
#include "tests/support/sanitized.hpp"

namespace rc {

template <>
struct Arbitrary<reprise::test::call> {
  static Gen<reprise::test::call> arbitrary() {
    using reprise::test::action;
    using reprise::test::call;
    // Captures are often spoiled before they end; more of what fills and uses graphs makes up.
    const auto what = gen::weightedElement<action>({{4, action::begin},
                                                    {5, action::end},
                                                    {1, action::abandon},
                                                    {8, action::fill},
                                                    {3, action::fork},
                                                    {4, action::instantiate},
                                                    {6, action::launch},
                                                    {3, action::update},
                                                    {4, action::toggle},
                                                    {4, action::change},
                                                    {3, action::clone},
                                                    {1, action::destroy_graph},
                                                    {1, action::destroy_executable},
                                                    {1, action::move},
                                                    {1, action::synchronize}});
    const auto any =
        gen::map(gen::inRange(0, 256), [](int v) { return static_cast<std::uint8_t>(v); });
    return gen::build<call>(gen::set(&call::what, what), gen::set(&call::a, any),
                            gen::set(&call::b, any), gen::set(&call::value, any));
  }
};

}  // namespace rc

namespace reprise::test {
namespace {

using calls = std::vector<call>;

// The same orders every time, unless somebody asks for others.
constexpr int orders = test::sanitized ? 300 : 4000;
const bool same_orders = [] {
  const std::string asked = "seed=4 max_size=120 max_success=" + std::to_string(orders);
  return setenv("RC_PARAMS", asked.c_str(), 0) == 0;
}();

// How often each action was done, over all orders: an order of refusals would say little.
std::map<action, int> done;

// Calls that only spoil a capture, or end none, are mostly turned into what gets further.
call steered(const state_machine& machine, call one) {
  const bool spoils = one.what == action::begin || one.what == action::instantiate ||
                      one.what == action::launch || one.what == action::synchronize;
  const bool ends = one.what == action::end || one.what == action::abandon;
  if (one.value % 16 == 0) return one;
  if (machine.capturing() && spoils) one.what = action::end;
  if (!machine.capturing() && ends) one.what = action::begin;
  return one;
}

void expect_as_modelled(state_machine& machine, const calls& made) {
  for (const call& given : made) {
    const call one = steered(machine, given);
    const ending was = machine.make(one);
    const ending should_be = machine.expect(one);
    if (was == ending::done) ++done[one.what];
    if (was != should_be) RC_LOG() << one << " was " << was << ", not " << should_be << "\n";
    RC_ASSERT(was == should_be);
  }
  const auto got = machine.cells_of_the_device();
  RC_ASSERT(got == machine.cells_of_the_model());
}

void expect_no_finding(simulated& dev) {
  dev.close();
  for (const sim::finding& f : dev.seen().findings) RC_FAIL(f.text);
}

TEST(any_calls, do_what_the_model_says_on_one_thread) {
  EXPECT_TRUE(same_orders);
  EXPECT_TRUE(rc::check([](const calls& made, std::uint16_t seed) {
    simulated dev{seed};
    {
      state_machine machine{dev};
      expect_as_modelled(machine, made);
    }
    expect_no_finding(dev);
  }));
  EXPECT_EQ(done.size(), 15U);
  for (const auto& [what, times] : done) EXPECT_GT(times, orders / 8) << call{what};
}

// Each thread has a machine of its own on the one device; nothing of one may show in the other.
TEST(any_calls, do_what_the_model_says_on_two_threads) {
  EXPECT_TRUE(rc::check([](const calls& made, const calls& beside, std::uint16_t seed) {
    simulated dev{seed};
    {
      state_machine here{dev};
      state_machine there{dev};
      std::vector<std::pair<ending, ending>> theirs;
      host_thread second{dev, [&] {
                           for (const call& given : beside) {
                             const call one = steered(there, given);
                             const ending was = there.make(one);
                             theirs.emplace_back(was, there.expect(one));
                           }
                         }};
      expect_as_modelled(here, made);
      second.join();
      for (const auto& [was, should_be] : theirs) RC_ASSERT(was == should_be);
      const auto got = there.cells_of_the_device();
      RC_ASSERT(got == there.cells_of_the_model());
    }
    expect_no_finding(dev);
  }));
}

// Two threads that launch, switch and change one executable: calls are taken one by one, and the
// last launch has whatever was set last.
TEST(any_calls, on_one_executable_from_two_threads_are_taken_one_by_one) {
  EXPECT_TRUE(rc::check([](std::uint16_t seed) {
    const auto few = rc::gen::resize(15, rc::gen::arbitrary<std::vector<std::uint8_t>>());
    const std::vector<std::uint8_t> mine = *few;
    const std::vector<std::uint8_t> theirs = *few;
    simulated dev{seed};
    {
      const stream s{dev.dev()};
      pool memory{dev, "x"};
      const buffer<int> x{memory, 4, s};
      const buffer<int> y{memory, 4, s};
      fill(s, write<int>{x}, -1);
      fill(s, write<int>{y}, -1);
      node_id first{};
      node_id second{};
      const graph made = capture(s, [&](stream_ref c) {
        first = fill(c, write<int>{x}, 0);
        second = fill(c, write<int>{y}, 0);
      });
      executable step = made.instantiate(s);
      const auto use = [&](stream_ref on, const std::vector<std::uint8_t>& all, int sign) {
        for (const std::uint8_t v : all) {
          if (v % 3 == 0) step.launch(on);
          if (v % 3 == 1) step.change_fill(first, write<int>{x}, sign * int{v});
          if (v % 3 == 2) step.enable(second, v % 2 == 0);
        }
      };
      const stream other{dev.dev()};
      order(s, other);
      host_thread beside{dev, [&] { use(other, theirs, -1); }};
      use(s, mine, 1);
      beside.join();
      order(other, s);
      step.change_fill(first, write<int>{x}, 77);
      step.enable(second, true);
      step.launch(s);
      RC_ASSERT(fetched(s, x.all()) == std::vector<int>(4, 77));
      RC_ASSERT(fetched(s, y.all()) == std::vector<int>(4, 0));
    }
    expect_no_finding(dev);
  }));
}

}  // namespace
}  // namespace reprise::test
