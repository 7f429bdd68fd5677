// Captures that go wrong: what is refused inside one, with which words, and that stream and memory
// are as before.
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

class capture_on : public on_each_device {
 protected:
  // `call` inside a capture is refused by name, the capture with it, and the stream is usable
  // after.
  template <class Call>
  void expect_refused(std::string_view name, Call&& call) {
    SCOPED_TRACE(name);
    expect_names(message_of<capture_error>([&] { capture(s(), call); }), name, GetParam(),
                 "capture_test.cpp");
    expect_usable(s());

    // A body that swallows the refusal does not get a graph that means something else.
    const std::string message = message_of<capture_error>(
        [&] { capture(s(), [&](stream_ref c) { EXPECT_THROW(call(c), capture_error); }); });
    EXPECT_TRUE(has(message, "end_capture on " + GetParam())) << message;
    EXPECT_TRUE(has(message, name)) << "the cause is not named: " << message;
    expect_usable(s());
  }
};

TEST_P(capture_on, refuses_a_synchronise) {
  expect_refused("synchronize", [](stream_ref c) { c.synchronize(); });
}

TEST_P(capture_on, refuses_another_capture) {
  expect_refused("begin_capture", [](stream_ref c) { capture(c, [](stream_ref) {}); });
}

TEST_P(capture_on, refuses_a_launch_and_an_instantiation) {
  const graph made = capture(s(), [](stream_ref) {});
  const executable replayed = made.instantiate(s());
  expect_refused("launch", [&](stream_ref c) { replayed.launch(c); });
  expect_refused("instantiate", [&](stream_ref c) { (void)made.instantiate(c); });
}

TEST_P(capture_on, refuses_questions_about_an_event_that_it_recorded) {
  event inside{dev()};
  expect_refused("finished", [&](stream_ref c) {
    inside.record(c);
    (void)inside.finished();
  });
  expect_refused("synchronize event", [&](stream_ref c) {
    inside.record(c);
    inside.synchronize();
  });
}

TEST_P(capture_on, refuses_copies_from_and_to_pageable_memory) {
  const buffer<int> x{memory(), 4, s()};
  std::vector<int> host(4, 1);
  const view<int> pageable{host.data(), host.size()};
  expect_refused("copy", [&](stream_ref c) { copy(c, read<int>{pageable}, write<int>{x}); });
  expect_refused("copy", [&](stream_ref c) { copy(c, read<int>{x}, write<int>{pageable}); });
}

TEST_P(capture_on, refuses_copies_of_pinned_memory_that_is_gone) {
  if (dev().bodies() == device_kind::cuda) {
    GTEST_SKIP() << "the driver still calls a small pinned block pinned after it was freed";
  }
  const buffer<int> x{memory(), 4, s()};
  std::optional<pinned<int>> host{std::in_place, dev(), 4U};
  const view<int> gone{*host};
  host.reset();
  // At once: later its address may be another's.
  expect_names(message_of<capture_error>([&] {
                 capture(s(), [&](stream_ref c) { copy(c, read<int>{gone}, write<int>{x}); });
               }),
               "copy", GetParam(), "capture_test.cpp");
  expect_usable(s());
}

// D16: a wait that a graph would lose.
TEST_P(capture_on, refuses_a_wait_for_work_outside_of_it) {
  const stream other{dev()};
  event outside{dev()};
  outside.record(other);
  expect_refused("event wait", [&](stream_ref c) { outside.wait(c); });

  event never{dev()};
  expect_refused("event wait", [&](stream_ref c) { never.wait(c); });

  event earlier{dev()};
  capture(s(), [&](stream_ref c) { earlier.record(c); });
  expect_refused("event wait", [&](stream_ref c) { earlier.wait(c); });
}

TEST_P(capture_on, refuses_a_wait_for_an_event_that_was_recorded_again_outside) {
  const stream other{dev()};
  event moved{dev()};
  expect_refused("event wait", [&](stream_ref c) {
    moved.record(c);
    moved.record(other);
    moved.wait(c);
  });
}

TEST_P(capture_on, names_both_streams_of_a_wait_that_it_refuses) {
  const auto line = std::source_location::current().line() + 1;
  const stream other{dev()};
  const stream captured{dev()};
  event outside{dev()};
  outside.record(other);
  const std::string message =
      message_of<capture_error>([&] { capture(captured, [&](stream_ref c) { outside.wait(c); }); });
  EXPECT_TRUE(has(message, "recorded last on stream ")) << message;
  EXPECT_TRUE(has(message, "capture_test.cpp:" + std::to_string(line + 1))) << message;
}

TEST_P(capture_on, leaves_an_event_that_stands_for_nothing_outside_of_it) {
  event inside{dev()};
  capture(s(), [&](stream_ref c) { inside.record(c); });
  // It stands for a place in a graph: a wait for it would order nothing.
  for (const std::string& message : {message_of<device_error>([&] { inside.wait(s()); }),
                                     message_of<device_error>([&] { inside.synchronize(); }),
                                     message_of<device_error>([&] { (void)inside.finished(); })}) {
    EXPECT_TRUE(has(message, "recorded last in a capture that is over")) << message;
  }
  inside.record(s());
  inside.synchronize();
  EXPECT_TRUE(inside.finished());
}

TEST_P(capture_on, takes_an_event_that_was_recorded_outside_first_and_then_inside) {
  event reused{dev()};
  reused.record(s());
  const stream branch{dev()};
  const buffer<int> x{memory(), 4, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    reused.record(c);
    reused.wait(branch);
    EXPECT_TRUE(stream_ref{branch}.capturing());
    fill(branch, write<int>{x}, 1);
    reused.record(branch);
    reused.wait(c);
  });
  EXPECT_EQ(made.nodes(), 1U);
}

// D5
TEST_P(capture_on, lets_an_exception_of_the_body_through_as_it_is) {
  struct own_error {
    int number;
  };
  const std::size_t before = leased();
  const reports quiet;
  const auto deep = [&](stream_ref c) {
    const buffer<int> y{memory(), 100000, c};
    fill(c, write<int>{y}, 1);
    const pinned<int> p{dev(), 100};
    copy(c, read<int>{y.all().subview(0, 100)}, write<int>{p});
    throw own_error{42};
  };
  try {
    capture(s(), [&](stream_ref c) {
      const event inside{dev()};
      deep(c);
    });
    FAIL() << "the exception was swallowed";
  } catch (const own_error& arrived) {
    EXPECT_EQ(arrived.number, 42);
  }
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  EXPECT_EQ(dev().state().open_captures, 0);
  EXPECT_GT(leased(), before) << "the pool holds its slab for the next one";
  expect_usable(s());
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
}

// D6
TEST_P(capture_on, that_is_given_up_a_thousand_times_holds_no_more_than_once) {
  const auto give_up = [&] {
    EXPECT_THROW(capture(s(),
                         [&](stream_ref c) {
                           const buffer<int> a{memory(), 300000, c};
                           const buffer<int> b{memory(), 30, c};
                           const buffer<int> d{memory(), 70000, c};
                           fill(c, write<int>{b}, 1);
                           throw usage_error{"no"};
                         }),
                 usage_error);
  };
  give_up();
  const std::size_t high_water = leased();
  EXPECT_GT(high_water, 0U);
  const calls_since now{*counts};
  for (int i = 1; i < 1000; ++i) give_up();
  EXPECT_EQ(leased(), high_water);
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(now[seam_call::allocate], 0U);
  EXPECT_EQ(now[seam_call::capture], 999U);
  expect_usable(s());
}

// D4: a pool that dies meanwhile cannot wait for the captured stream; its slabs wait instead.
TEST_P(capture_on, is_not_spoiled_by_a_pool_that_dies_meanwhile) {
  const reports quiet;
  const auto x = filled<int>(4, 1);
  auto other = std::make_unique<pool>(dev(), "dropped");
  { const block freed{*other, 1000, s()}; }
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{x}, 2);
    other.reset();
  });
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  EXPECT_EQ(leased(), memory().bytes());
}

TEST_P(capture_on, that_is_given_up_leaves_nothing_of_a_pool_of_its_own) {
  const reports quiet;
  const calls_since now{*counts};
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW(capture(s(),
                         [&](stream_ref c) {
                           pool own{dev(), "inner"};
                           const buffer<int> y{own, 100, c};
                           fill(c, write<int>{y}, 1);
                           throw usage_error{"no"};
                         }),
                 usage_error);
  }
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  EXPECT_EQ(leased(), 0U);
  EXPECT_EQ(now[seam_call::allocate], 1U) << "the slab is lent again";
  dev().trim();
  EXPECT_EQ(now[seam_call::release], 1U);
  expect_usable(s());
}

// D4: other objects that die meanwhile.
TEST_P(capture_on, is_not_spoiled_by_a_graph_an_executable_or_a_stream_that_dies_meanwhile) {
  const auto x = filled<int>(4, 1);
  std::optional<graph> old{capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 5); })};
  std::optional<executable> replayed{old->instantiate(s())};
  std::optional<stream> other{dev()};
  std::optional<event> passed{dev()};
  std::optional<pinned<int>> host{std::in_place, dev(), 10U};
  passed->record(*other);
  s().synchronize();
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{x}, 2);
    old.reset();
    replayed.reset();
    passed.reset();
    other.reset();
    host.reset();
  });
  const executable fresh = made.instantiate(s());
  fresh.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
}

TEST_P(capture_on, does_not_touch_a_stream_that_is_not_in_it) {
  const stream other{dev()};
  const buffer<int> x{memory(), 4, other};
  capture(s(), [&](stream_ref c) {
    fill(other, write<int>{x}, 3);
    EXPECT_EQ(read_back(other, x), std::vector<int>(4, 3));
    EXPECT_TRUE(c.capturing());
    EXPECT_FALSE(stream_ref{other}.capturing());
  });
}

INSTANTIATE_TEST_SUITE_P(devices, capture_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
