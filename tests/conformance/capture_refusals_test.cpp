// Rules 5 and 6: what a capture refuses, with which words, and that stream and memory are as
// before.
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

using place = std::source_location;

TEST_P(rule_05, refuses_a_synchronise) {
  expect_refused("synchronize", [](stream_ref c) { c.synchronize(); });
}

TEST_P(rule_05, refuses_a_synchronise_of_a_fork) {
  const stream branch{dev()};
  expect_refused("synchronize", [&](stream_ref c) {
    order(c, branch);
    branch.synchronize();
  });
  expect_clean(branch);
}

TEST_P(rule_05, refuses_a_launch_and_an_instantiation) {
  const graph made = capture(s(), [](stream_ref) {});
  const executable replayed = made.instantiate(s());
  expect_refused("launch", [&](stream_ref c) { replayed.launch(c); });
  expect_refused("instantiate", [&](stream_ref c) { (void)made.instantiate(c); });
}

TEST_P(rule_05, refuses_questions_about_an_event_that_it_recorded) {
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

TEST_P(rule_05, refuses_copies_from_and_to_pageable_memory) {
  const buffer<int> x{memory(), 4, s()};
  std::vector<int> host(4, 1);
  const view<int> pageable{host.data(), host.size()};
  expect_refused("copy", [&](stream_ref c) { copy(c, read<int>{pageable}, write<int>{x}); });
  expect_refused("copy", [&](stream_ref c) { copy(c, read<int>{x}, write<int>{pageable}); });
}

TEST_P(rule_05, refuses_copies_of_pinned_memory_that_is_gone) {
  if (on_cuda()) GTEST_SKIP() << "the driver calls a small block pinned after it was freed, too";
  const buffer<int> x{memory(), 4, s()};
  std::optional<pinned<int>> host{std::in_place, dev(), 4U};
  const view<int> gone{*host};
  host.reset();
  // At once: later its address may be another's.
  expect_names(message_of<capture_error>([&] {
                 capture(s(), [&](stream_ref c) { copy(c, read<int>{gone}, write<int>{x}); });
               }),
               "copy", GetParam(), "capture_refusals_test.cpp");
  expect_clean(s());
}

TEST_P(rule_05, an_abandoned_capture_frees_its_stream_in_every_state) {
  const reports quiet;
  const auto x = number();
  const stream_id id = s().id();
  api().abandon_capture(id);  // none was begun

  api().begin_capture(id, place::current());
  api().abandon_capture(id);  // empty
  expect_clean(s());

  api().begin_capture(id, place::current());
  append(s(), x, 1);
  api().abandon_capture(id);  // whole
  api().abandon_capture(id);  // again
  expect_clean(s());

  api().begin_capture(id, place::current());
  EXPECT_THROW(s().synchronize(), capture_error);
  api().abandon_capture(id);  // refused
  expect_clean(s());
  EXPECT_EQ(value_of(s(), x), 0);
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
}

TEST_P(rule_06, refuses_another_capture) {
  expect_refused("begin_capture", [](stream_ref c) { capture(c, [](stream_ref) {}); });
}

TEST_P(rule_06, refuses_a_capture_that_a_fork_begins_or_ends) {
  const stream branch{dev()};
  expect_refused("begin_capture", [&](stream_ref c) {
    order(c, branch);
    capture(branch, [](stream_ref) {});
  });
  expect_refused("end_capture", [&](stream_ref c) {
    order(c, branch);
    api().end_capture(stream_ref{branch}.id(), place::current());
  });
  expect_clean(branch);
}

TEST_P(rule_06, a_capture_ends_where_it_began_only) {
  const stream side{dev()};
  const std::string none =
      message_of<capture_error>([&] { api().end_capture(s().id(), place::current()); });
  EXPECT_TRUE(has(none, "no capture was begun")) << none;

  event forked{dev()};
  api().begin_capture(s().id(), place::current());
  forked.record(s());
  forked.wait(side);
  EXPECT_THROW(api().end_capture(stream_ref{side}.id(), place::current()), capture_error);
  EXPECT_TRUE(s().capturing());
  api().abandon_capture(s().id());
  expect_clean(s());
  expect_clean(side);
}

TEST_P(rule_06, D16_refuses_a_wait_for_work_outside_of_it) {
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

TEST_P(rule_06, D16_refuses_a_wait_for_an_event_that_was_recorded_again_outside) {
  const stream other{dev()};
  event moved{dev()};
  expect_refused("event wait", [&](stream_ref c) {
    moved.record(c);
    moved.record(other);
    moved.wait(c);
  });
}

TEST_P(rule_06, D16_names_both_streams_of_a_wait_that_it_refuses) {
  const stream other{dev()};
  const auto line = place::current().line() + 1;
  const stream captured{dev()};
  event outside{dev()};
  outside.record(other);
  const std::string message =
      message_of<capture_error>([&] { capture(captured, [&](stream_ref c) { outside.wait(c); }); });
  EXPECT_TRUE(has(message, "recorded last on stream 2,")) << message;
  EXPECT_TRUE(has(message, "stream 3 (made at capture_refusals_test.cpp:" + std::to_string(line)))
      << message;
}

TEST_P(rule_06, two_captures_are_not_merged) {
  const stream other{dev()};
  event first{dev()};
  api().begin_capture(s().id(), place::current());
  first.record(s());
  EXPECT_THROW(capture(other, [&](stream_ref c) { first.wait(c); }), capture_error);
  api().destroy(api().end_capture(s().id(), place::current()));
  expect_clean(s());
  expect_clean(other);
}

TEST_P(rule_06, an_event_recorded_inside_stands_for_nothing_outside) {
  event inside{dev()};
  capture(s(), [&](stream_ref c) { inside.record(c); });
  // It stands for a place in a graph: a wait for it would order nothing.
  for (const std::string& message : {message_of<device_error>([&] { inside.wait(s()); }),
                                     message_of<device_error>([&] { inside.synchronize(); }),
                                     message_of<device_error>([&] { (void)inside.finished(); })}) {
    EXPECT_TRUE(has(message, "recorded last in a capture that is over")) << message;
  }
  inside.record(s());
  inside.wait(s());
  inside.synchronize();
  EXPECT_TRUE(inside.finished());
}

}  // namespace
}  // namespace reprise::test
