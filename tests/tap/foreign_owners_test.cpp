// What owners of foreign graphs do beside launching them as told: throw, launch past the watch,
// instantiate anew, capture late; and what they are refused.
#include <stdexcept>

#include "reprise/toggle/refusal.hpp"
#include "tests/tap/foreign_graphs.hpp"

namespace reprise {
namespace {

using test::calls_since;
using test::has;
using test::message_of;

class foreign_owners : public test::foreign_bench {};
MONITORED_ON_ALL_DEVICES(foreign_owners);

TEST_P(foreign_owners, of_two_monitors_are_independent) {
  monitor one{on.opened, small()};
  monitor other{on.opened, small()};
  one.watch({"resid_pre", row_mode::all()});
  other.watch({"resid_post", row_mode::all()});
  send_here(one);
  const auto others = std::make_shared<test::kept_book>();
  send_to(other, others);
  const graph first = model.captured({&one});
  const graph second = model.captured({&other});
  const executable first_of_theirs = first.instantiate(on.work);
  const executable second_of_theirs = second.instantiate(on.work);
  watched_graph by_one = one.bind(first, first_of_theirs);
  watched_graph by_other = other.bind(second, second_of_theirs);
  for (int i = 0; i < 4; ++i) {
    one.enable(i % 2 == 0 ? "resid_pre:1" : "*");
    step(by_one, i % 2 == 0 ? "resid_pre:1" : "resid_pre:*");
    by_other.launch(on.work);
  }
  one.flush();
  other.flush();
  expect_all();
  EXPECT_EQ(others->records.size(), 4U * layers);
  EXPECT_EQ(one.counts().lost + other.counts().lost, 0U);
  EXPECT_THROW(one.bind(second, second_of_theirs), usage_error);
}

// Each launch has the plan of one; the other's producers publish nothing in it.
TEST_P(foreign_owners, with_windows_of_two_monitors_publish_for_the_one_that_launches) {
  monitor one{on.opened, small()};
  monitor other{on.opened, small()};
  one.watch({"resid_pre", row_mode::all()});
  other.watch({"resid_post", row_mode::all()});
  send_here(one);
  const auto others = std::make_shared<test::kept_book>();
  send_to(other, others);
  const graph made = model.captured({&one, &other});
  const executable theirs = made.instantiate(on.work);
  watched_graph by_one = one.bind(made, theirs);
  watched_graph by_other = other.bind(made, theirs);
  for (std::size_t i = 0; i < 3; ++i) {
    step(by_one, "resid_pre:*");
    by_other.launch(on.work);
    on.work.synchronize();
    other.flush();
    EXPECT_EQ(others->records.size(), (i + 1) * layers);
  }
  one.flush();
  expect_all();
  EXPECT_EQ(one.counts().lost + other.counts().lost, 0U);
}

TEST_P(foreign_owners, of_a_window_that_throws_are_as_if_it_had_not_been) {
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  const graph good = model.captured({&eye});
  const executable theirs = good.instantiate(on.work);
  watched_graph watched = eye.bind(good, theirs);
  step(watched, "*");
  open_capture going_on{on.work};
  try {
    tap_window window = eye.open_window(on.work);
    tap_window* const windows[] = {&window};
    model.works(on.work, windows);
    throw std::runtime_error{"their model"};
  } catch (const std::runtime_error&) {
  }
  const graph left = going_on.end();
  const executable of_it = left.instantiate(on.work);
  EXPECT_TRUE(has(message_of<usage_error>([&] { eye.bind(left, of_it); }), "has no tap"));
  for (int i = 0; i < 3; ++i) {
    launch_past(of_it);  // not refused, and publishes nothing
    eye.enable(i == 1 ? "resid_pre:0" : "*");
    step(watched, i == 1 ? "resid_pre:0" : "*");
  }
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().lost, 0U);
  EXPECT_EQ(eye.switch_counts().anomalies, 0U);
}

TEST_P(foreign_owners, captured_late_are_refused_before_the_launch_until_they_are_bound) {
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  const graph first = model.captured({&eye});
  const executable theirs = first.instantiate(on.work);
  watched_graph watched = eye.bind(first, theirs);
  step(watched, "*");
  const graph late = model.captured({&eye});
  const executable unbound = late.instantiate(on.work);
  const calls_since counted{*on.calls};
  try {
    unbound.launch(on.work);
    ADD_FAILURE() << "was launched";
  } catch (const switch_refusal& refusal) {
    EXPECT_EQ(refusal.why(), refused::unbound);
    EXPECT_TRUE(has(refusal.what(), "call bind(graph, executable)")) << refusal.what();
  }
  EXPECT_EQ(counted[seam_call::launch], 0U);
  watched_graph recovered = eye.bind(late, unbound);
  step(recovered, "*");
  eye.enable("resid_pre:2");
  step(recovered, "resid_pre:2");
  step(watched, "resid_pre:2");
  eye.flush();
  expect_all();
}

TEST_P(foreign_owners, instantiated_anew_are_bound_again_with_all_on) {
  for (const toggle_mode by : {toggle_mode::automatic, toggle_mode::host_lazy}) {
    monitor_options how = small();
    how.switch_by = by;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    send_here(eye);
    book->records.clear();
    expected.clear();
    steps = 0;
    const graph made = model.captured({&eye});
    std::optional<executable> theirs{made.instantiate(on.work)};
    watched_graph watched = eye.bind(made, *theirs);
    step(watched, "*");
    for (const char* enabled : {"resid_post:1", "none", "resid_pre:*"}) {
      eye.enable(enabled);
      step(watched, enabled);
      theirs.emplace(made.instantiate(on.work));
      watched = eye.bind(made, *theirs);
      step(watched, enabled);
      watched = eye.bind(made, *theirs);  // the same, for nothing
      step(watched, enabled);
    }
    eye.flush();
    expect_all();
    EXPECT_EQ(eye.counts().lost, 0U);
  }
}

// Before it is bound, between watched launches, and when the monitor is gone.
TEST_P(foreign_owners, launched_past_the_watch_run_and_publish_nothing) {
  auto eye = std::make_unique<monitor>(on.opened, small());
  eye->watch({"*", row_mode::all()});
  send_here(*eye);
  const graph made = model.captured({eye.get()});
  const executable theirs = made.instantiate(on.work);
  for (int i = 0; i < 3; ++i) launch_past(theirs);
  watched_graph watched = eye->bind(made, theirs);
  for (int i = 0; i < 300; ++i) {
    step(watched, "*");
    if (i % 7 == 0) launch_past(theirs);
  }
  eye->flush();
  expect_all();
  EXPECT_EQ(eye->counts().lost, 0U);
  EXPECT_EQ(eye->counts().steps, 300U);
  eye->stop();
  step(watched, "none");
  eye.reset();
  step(watched, "none");
  launch_past(theirs);
  expect_all();
}

TEST_P(foreign_owners, are_refused_by_name_where_they_cannot_be_watched) {
  monitor_options how = small();
  how.switch_by = toggle_mode::device;
  monitor driven{on.opened, how};
  monitor eye{on.opened, small()};
  driven.watch({"*", row_mode::all()});
  eye.watch({"*", row_mode::all()});
  std::string in_mode_device, in_a_second_window, in_the_same_capture;
  const graph made = capture(on.work, [&](stream_ref c) {
    in_mode_device = message_of<usage_error>([&] { driven.open_window(c); });
    {
      tap_window window = eye.open_window(c);
      in_a_second_window = message_of<usage_error>([&] { eye.open_window(c); });
      tap_window* const windows[] = {&window};
      model.works(c, windows);
      window.close();
      window.close();
      EXPECT_THROW(window.tap({"x", 0}, {}), usage_error);
    }
    in_the_same_capture = message_of<usage_error>([&] { eye.open_window(c); });
  });
  EXPECT_TRUE(has(in_mode_device, "mode device")) << in_mode_device;
  EXPECT_TRUE(has(in_a_second_window, "close it first")) << in_a_second_window;
  EXPECT_TRUE(has(in_the_same_capture, "one window open")) << in_the_same_capture;
  const graph unwatched_graph = model.captured({});
  const executable of_it = unwatched_graph.instantiate(on.work);
  EXPECT_TRUE(
      has(message_of<usage_error>([&] { eye.bind(unwatched_graph, of_it); }), "has no tap"));
}

}  // namespace
}  // namespace reprise
