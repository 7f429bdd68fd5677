// Steps under a monitor are recorded with producers and replayed with them, and their records are
// those of a separate plain run, bit for bit.
#include "reprise/tap/monitor.hpp"

#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::tapped_model;

class monitors : public test::monitored {};
MONITORED_ON_ALL_DEVICES(monitors);

TEST_P(monitors, take_what_a_plain_run_marks_from_replays_too) {
  for (const bool in_line : {false, true}) {
    for (const bool thread : {false, true}) {
      tapped_model model{4, 5};
      monitor_options how = small();
      how.in_line = in_line;
      how.thread = thread;
      how.drain_by = in_line != thread ? drain_way::kernel : drain_way::copy_engine;
      monitor eye{on.opened, how};
      eye.watch({"resid_pre:*,resid_post:3", row_mode::all()});
      send_here(eye);
      replay_cache cache{on.opened};
      cache.observe(eye.observer());
      expected.clear();
      book->records.clear();
      steps = 0;
      for (int i = 0; i < 20; ++i) run(cache, eye, model, 3, "resid_pre:*,resid_post:3");
      eye.flush();
      EXPECT_EQ(cache.counts().captured, 1U);
      EXPECT_EQ(cache.counts().replayed, 19U);
      expect_all();
      const tap_counts counts = eye.counts();
      expect_sums(counts);
      EXPECT_EQ(counts.published, 20U * 5);
      EXPECT_EQ(counts.reserved_bytes, counts.published_bytes);
      EXPECT_EQ(counts.drained_bytes, counts.published_bytes);
    }
  }
}

TEST_P(monitors, give_the_same_records_where_nothing_is_recorded) {
  tapped_model model{3, 4};
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened, {.record = false}};
  cache.observe(eye.observer());
  for (int i = 0; i < 10; ++i) run(cache, eye, model, 2, "*");
  eye.flush();
  expect_all();
  expect_sums(eye.counts());
}

TEST_P(monitors, watch_other_points_from_the_next_step_on) {
  tapped_model model{3, 4};
  monitor eye{on.opened, small()};
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (const char* watched : {"resid_pre:0", "none", "resid_post:*", "resid_pre:1-2"}) {
    eye.watch({watched, row_mode::all()});
    for (int i = 0; i < 3; ++i) run(cache, eye, model, 2, watched);
  }
  eye.flush();
  expect_all();
  EXPECT_EQ(cache.counts().captured, 4U);
  EXPECT_EQ(eye.unmatched(), "");
  eye.watch({"resid_pre:7", row_mode::all()});
  EXPECT_EQ(eye.unmatched(), "resid_pre:7");
}

TEST_P(monitors, take_no_more_of_a_prefix_than_the_device_says) {
  tapped_model model{2, 4};
  pool memory{on.opened, "n"};
  const buffer<std::int64_t> n{memory, 1, on.work};
  monitor eye{on.opened, small()};
  eye.watch({"resid_pre:1", row_mode::prefix(n.all().data())});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  std::vector<std::int64_t> taken;
  for (const std::int64_t says : {2, 0, 5, 99, -3, 1}) {
    copy(on.work, read<std::int64_t>{view<const std::int64_t>{&says, 1}}, write<std::int64_t>{n});
    run(cache, eye, model, 5, "none");
    taken.push_back(std::clamp<std::int64_t>(says, 0, 5));
  }
  eye.flush();
  std::vector<std::int64_t> got;
  for (const auto& record : book->records) got.push_back(record.about.rows);
  std::erase(taken, 0);
  EXPECT_EQ(got, taken);
  EXPECT_EQ(eye.counts().published, 6U) << "no rows are a publication too";
  expect_sums(eye.counts());
}

TEST_P(monitors, take_of_each_chunk_what_its_request_has) {
  tapped_model model{1, 4};
  monitor eye{on.opened, small()};
  eye.watch({"resid_pre", row_mode::chunked(3)});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  // Chunks of 4 rows; the request in place 1 has none.
  const std::vector<request_rows> batch{{70, 8, 3, 2, 5}, {71, 0, 1, 0, 0}};
  run(cache, eye, model, 12, "resid_pre", row_mode::kind::real, batch);
  eye.flush();
  expect_all();
}

TEST_P(monitors, say_what_cannot_be_tapped_before_anything_is_promised) {
  tapped_model model{2, 4};
  monitor eye{on.opened, small()};
  eye.watch({"resid_pre", row_mode::real()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  const std::vector<request_rows> wrong{{9, 1, 3, 0, 0}};
  const std::string line = test::message_of<usage_error>(
      [&] { run(cache, eye, model, 3, "none", row_mode::kind::real, wrong); });
  EXPECT_EQ(line,
            "point resid_pre:0: request 9 has rows 1 to 3 of a tensor of 3; say the rows that "
            "it has");
  EXPECT_EQ(eye.counts().planned, 0U);
  const std::vector<request_rows> right{{9, 1, 2, 0, 0}};
  --steps;
  run(cache, eye, model, 3, "resid_pre", row_mode::kind::real, right);
  eye.flush();
  for (auto& record : expected) record.step = book->records.front().about.step;
  expect_all();
  EXPECT_THROW(eye.watch({"resid_pre", row_mode::chunked(65)}), usage_error);
  monitor_options none = small();
  none.ring_bytes = 24;
  EXPECT_TRUE(test::has(test::message_of<usage_error>([&] {
                          monitor{on.opened, none};
                        }),
                        "multiple of 16"));
}

TEST_P(monitors, of_one_process_are_independent) {
  tapped_model model{2, 4};
  monitor one{on.opened, small()};
  monitor other{on.opened, small()};
  one.watch({"resid_pre:0", row_mode::all()});
  other.watch({"resid_post:1", row_mode::all()});
  const auto others = std::make_shared<test::kept_book>();
  send_here(one);
  send_to(other, others);
  replay_cache cache{on.opened};
  cache.observe(one.observer());
  cache.observe(other.observer());
  for (int i = 0; i < 5; ++i) run(cache, one, model, 3, "resid_pre:0");
  one.flush();
  other.flush();
  expect_all();
  EXPECT_EQ(others->records.size(), 5U);
  EXPECT_EQ(cache.counts().replayed, 4U);
}

}  // namespace
}  // namespace reprise
