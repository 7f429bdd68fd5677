// Rule 22: what is destroyed while a capture is open, by its own thread or another, is put off
// until the capture ends. D4 throughout.
#include "tests/conformance/captured_beside.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

// One of everything that can be destroyed, all of it used before.
struct doomed {
  doomed(device_ref device, stream_ref on, const buffer<int>& x)
      : memory{std::in_place, device, "dropped"},
        other{device},
        passed{device},
        host{std::in_place, device, 10U},
        made{capture(on, [&](stream_ref c) { fill(c, write<int>{x}, 5); })},
        step{made->instantiate(on)} {
    { const block freed{*memory, 1000, on}; }
    passed->record(*other);
    step->launch(on);
    on.synchronize();
  }
  void let_die() {
    other.reset();
    passed.reset();
    step.reset();
    made.reset();
    memory.reset();
    host.reset();
  }

  std::optional<pool> memory;
  std::optional<stream> other;
  std::optional<event> passed;
  std::optional<pinned<int>> host;
  std::optional<graph> made;
  std::optional<executable> step;
};

TEST_P(rule_22, D4_a_capture_is_not_spoiled_by_what_its_body_destroys) {
  const reports quiet;
  const buffer<int> x{memory(), 4, s()};
  doomed things{dev(), s(), x};
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{x}, 1);
    things.let_die();
    fill(c, write<int>{x}, 2);
  });
  EXPECT_EQ(made.size(), 2U);
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  EXPECT_EQ(leased(), memory().bytes()) << "the slabs of the pool that died went back";
  expect_clean(s());
}

TEST_P(rule_22, D4_a_capture_is_not_spoiled_by_what_another_thread_destroys) {
  const reports quiet;
  const buffer<int> x{memory(), 4, s()};
  doomed things{dev(), s(), x};
  const graph made = captured_beside(s(), x, [&] { things.let_die(); });
  EXPECT_EQ(made.size(), 2U);
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  EXPECT_EQ(leased(), memory().bytes());
  expect_clean(s());
}

// With launches in flight as well: put off twice, and nobody waits.
TEST_P(rule_22, D4_an_executable_in_flight_may_die_in_a_capture) {
  const reports quiet;
  const auto x = number();
  const auto y = number();
  s().synchronize();
  const stream busy{dev()};
  std::optional<graph> old{capture(s(), [&](stream_ref c) { append(c, y, 3); })};
  std::optional<executable> step{old->instantiate(busy)};
  held_stream held{busy};
  step->launch(busy);
  const graph made = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    step.reset();
    old.reset();
    append(c, x, 2);
  });
  EXPECT_EQ(made.size(), 2U);
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(busy, y), 3);
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  made.instantiate(s()).launch(s());
  EXPECT_EQ(value_of(s(), x), 12);
}

// Launched on the very stream that is captured afterwards, which takes no event from outside.
TEST_P(rule_22, D4_an_executable_in_flight_on_the_captured_stream_may_die_in_the_capture) {
  auto state = std::make_shared<std::atomic<int>>(0);
  const std::weak_ptr<std::atomic<int>> watch = state;
  const auto x = number();
  std::optional<executable> step{capture(s(), [&](stream_ref c) {
                                   host_call(c, "count", {},
                                             [kept = std::move(state)] { ++*kept; });
                                 }).instantiate(s())};
  held_stream held{s()};
  step->launch(s());
  const graph made = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    step.reset();
    append(c, x, 2);
  });
  EXPECT_EQ(watch.expired(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  made.instantiate(s()).launch(s());
  EXPECT_EQ(value_of(s(), x), 12);
  api().settle();
  EXPECT_TRUE(watch.expired());
}

TEST_P(rule_22, a_stream_that_dies_takes_its_own_capture_with_it) {
  const reports quiet;
  {
    const stream dying{dev()};
    api().begin_capture(stream_ref{dying}.id(), std::source_location::current());
  }
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  expect_clean(s());
}

}  // namespace
}  // namespace reprise::test
