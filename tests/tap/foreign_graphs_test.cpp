// Graphs that somebody else captures, instantiates and launches, under a monitor: their records are
// those of a plain run, and what they compute is what they compute unwatched.
#include "tests/tap/foreign_graphs.hpp"

namespace reprise {
namespace {

using test::calls_since;
using test::has;
using test::message_of;

class foreign_graphs : public test::foreign_bench {};
MONITORED_ON_ALL_DEVICES(foreign_graphs);

TEST_P(foreign_graphs, have_the_records_of_a_plain_run_and_the_outputs_of_the_bare_graph) {
  for (const row_mode mode : {row_mode::all(), row_mode::real(), row_mode::last()}) {
    SCOPED_TRACE(static_cast<int>(mode.what()));
    monitor eye{on.opened, small()};
    eye.watch({"*", mode});
    send_here(eye);
    const graph made = model.captured({&eye});
    const executable theirs = made.instantiate(on.work);
    watched_graph watched = eye.bind(made, theirs);
    book->records.clear();
    expected.clear();
    steps = 0;
    std::vector<replay_id> ids;
    for (int i = 0; i < 5; ++i) ids.push_back(step(watched, "*", mode.what(), batch));
    eye.flush();
    expect_all();
    for (const auto& record : book->records) {
      EXPECT_EQ(record.about.replay, ids.at(record.about.step));
    }
    const tap_counts counts = eye.counts();
    EXPECT_EQ(counts.steps, 5U);
    EXPECT_EQ(counts.planned, 5U * 2 * layers);
    EXPECT_EQ(counts.published, counts.planned);
    EXPECT_EQ(counts.uploads, 5U);
    EXPECT_EQ(counts.reserved_bytes, counts.published_bytes);
    EXPECT_EQ(counts.published_bytes, counts.drained_bytes);
    expect_sums(counts);
  }
}

TEST_P(foreign_graphs, fire_what_is_enabled_by_any_schedule) {
  for (const toggle_mode by :
       {toggle_mode::automatic, toggle_mode::variants, toggle_mode::host_lazy}) {
    SCOPED_TRACE(name_of(by));
    monitor_options how = small();
    how.switch_by = by;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    send_here(eye);
    const graph made = model.captured({&eye});
    const executable theirs = made.instantiate(on.work);
    watched_graph watched = eye.bind(made, theirs);
    book->records.clear();
    expected.clear();
    steps = 0;
    for (const char* enabled : {"*", "none", "resid_pre:1", "resid_pre:1", "none", "resid_post:*",
                                "resid_pre:0+2,resid_post:1", "*"}) {
      eye.enable(enabled);
      step(watched, enabled);
      step(watched, enabled);
    }
    eye.flush();
    expect_all();
    EXPECT_EQ(eye.counts().steps, 16U);
    EXPECT_EQ(eye.counts().lost, 0U);
    EXPECT_GT(eye.switch_counts().switches, 0U);
  }
}

// What a launch asks of the device, once all is warm: the launch.
TEST_P(foreign_graphs, are_launched_by_one_call) {
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  const graph made = model.captured({&eye});
  const executable theirs = made.instantiate(on.work);
  watched_graph watched = eye.bind(made, theirs);
  for (int i = 0; i < 2; ++i) step(watched, "*");
  eye.flush();
  const calls_since counted{*on.calls};
  for (int i = 0; i < 3; ++i) watched.launch(on.work, batch);
  EXPECT_EQ(counted[seam_call::launch], 3U);
  EXPECT_EQ(counted.all(), 3U);
}

TEST_P(foreign_graphs, drop_and_count_what_finds_no_room) {
  monitor_options how = small();
  how.flights = 2;
  how.drop_when_full = true;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  const graph made = model.captured({&eye});
  const executable theirs = made.instantiate(on.work);
  watched_graph watched = eye.bind(made, theirs);
  for (int i = 0; i < 5; ++i) step(watched, i < 2 ? "*" : "none");
  eye.flush();
  step(watched, "*");
  eye.flush();
  expect_all();
  const tap_counts counts = eye.counts();
  EXPECT_EQ(counts.steps, 6U);
  EXPECT_EQ(counts.dropped, 3U * 2 * layers);
  EXPECT_EQ(counts.planned, 3U * 2 * layers);
  EXPECT_EQ(counts.lost, 0U);
  expect_sums(counts);
}

// There is no eager run of a graph that somebody else captured.
TEST_P(foreign_graphs, drop_rows_that_never_fit_or_refuse_them) {
  monitor_options how = small();
  how.slots = 4;
  for (const bool strict : {false, true}) {
    how.allow_eager_fallback = !strict;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    const auto mine = std::make_shared<test::kept_book>();
    send_to(eye, mine);
    const graph made = model.captured({&eye});
    const executable theirs = made.instantiate(on.work);
    watched_graph watched = eye.bind(made, theirs);
    if (strict) {
      EXPECT_TRUE(has(message_of<usage_error>([&] { watched.launch(on.work); }),
                      "taps of a graph of somebody else: 6 publications"));
    } else {
      step(watched, "none");
    }
    eye.enable("resid_pre:0");
    step(watched, "resid_pre:0");
    eye.flush();
    EXPECT_EQ(mine->records.size(), 1U);
    EXPECT_EQ(eye.counts().never_fit, 1U);
    EXPECT_EQ(eye.counts().dropped, strict ? 0U : 6U);
    expect_sums(eye.counts());
  }
}

TEST_P(foreign_graphs, keep_their_order_across_streams) {
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  const graph made = model.captured({&eye});
  const executable theirs = made.instantiate(on.work);
  const executable another = made.instantiate(on.work);  // its works are the same memory's
  watched_graph watched[] = {eye.bind(made, theirs), eye.bind(made, another)};
  const stream second{on.opened};
  const std::vector<float> x = next_values();
  model.take(on.work, x);
  for (int i = 0; i < 6; ++i) {
    expect(x, "*", row_mode::kind::all, {});
    watched[i % 2].launch(i % 2 == 0 ? stream_ref{on.work} : stream_ref{second});
    ++steps;
  }
  second.synchronize();
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().lost, 0U);
}

// A work that Reprise does not see, as their kernels are.
TEST_P(foreign_graphs, whose_owner_names_what_he_overwrites_are_read_before) {
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  pool memory{on.opened, "theirs"};
  const buffer<float> h{memory, 8, on.work};
  const tensor_ref tapped = as_tensor(h.all(), dims{2, 4});
  const auto theirs_fill = [&](float value) {
    const access touches{h.all().data(), h.all().bytes(), true};
    work what;
    what.kind = work_kind::fill;
    what.label = "theirs";
    what.accesses = {&touches, 1};
    what.place = std::source_location::current();
    what.fill = {reinterpret_cast<std::byte*>(h.all().data()), h.all().bytes(), pattern_of(value),
                 sizeof value};
    on.opened.operator device_ref().api().submit(stream_ref{on.work}.id(), what);
  };
  const graph made = capture(on.work, [&](stream_ref c) {
    tap_window window = eye.open_window(c);
    for (int layer = 0; layer < 3; ++layer) {
      window.before_write(tapped);
      theirs_fill(static_cast<float>(layer));
      window.tap({"h", layer}, tapped);
    }
  });
  const executable step = made.instantiate(on.work);
  watched_graph watched = eye.bind(made, step);
  for (int i = 0; i < 4; ++i) watched.launch(on.work);
  on.work.synchronize();
  eye.flush();
  ASSERT_EQ(book->records.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(book->records[i].values, std::vector<float>(8, static_cast<float>(i % 3)));
  }
}

TEST_P(foreign_graphs, tapped_outside_of_a_capture_publish_as_eager_steps_do) {
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  for (const char* enabled : {"*", "resid_pre:1", "none"}) {
    eye.enable(enabled);
    const std::vector<float> x = next_values();
    expect(x, enabled, row_mode::kind::all, batch);
    const std::vector<float> right = unwatched(x);
    model.take(on.work, x);
    eye.plan_step(batch);
    {
      tap_window window = eye.open_window(on.work);
      tap_window* const windows[] = {&window};
      model.works(on.work, windows);
    }
    EXPECT_EQ(model.given(on.work), right);
    ++steps;
  }
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().steps, 3U);
  expect_sums(eye.counts());
}

}  // namespace
}  // namespace reprise
