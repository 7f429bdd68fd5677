// Steps that run in a break of another step: in the same cache or in another, in whatever way.
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class nested_runs : public replay_case {
 protected:
  void expect_right(replay_cache& outer, replay_cache& inner, int runs) {
    const floats in{1, 2};
    weighted of_inner{desk, 5};
    floats seen;
    interrupted of{desk, [&](stream_ref on, view<float> made) {
                     const step_result done =
                         inner.run(on, of_inner.what(), {of_inner.x.from_host(floats{7})});
                     seen = read_back<float>(on, done[of_inner.y].get());
                     interrupted::doubles()(on, made);
                   }};
    const step what = of.make();
    for (int i = 1; i <= runs; ++i) {
      const floats now = times(static_cast<float>(i), in);
      const step_result done = outer.run(s(), what, {of.x.from_host(now)});
      EXPECT_EQ(desk.values_of(done[of.y].get()), times(6, now));
      EXPECT_EQ(seen, floats{35});
    }
    EXPECT_EQ(desk.values_of(of.total), times(static_cast<float>(6 * runs * (runs + 1) / 2), in));
  }
};

REPRISE_ON_EACH_DEVICE(nested_runs);

TEST_P(nested_runs, are_recorded_and_replayed_in_the_same_cache) {
  replay_cache cache{dev()};
  expect_right(cache, cache, 5);
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 8U);
}

TEST_P(nested_runs, eager_ones_have_memory_of_their_own) {
  replay_cache cache{dev(), {.record = false}};
  expect_right(cache, cache, 5);
  EXPECT_EQ(cache.counts().eager, 10U);
}

TEST_P(nested_runs, may_be_eager_in_a_replay_and_replayed_in_an_eager_run) {
  replay_cache recorded{dev()};
  replay_cache eager{dev(), {.record = false}};
  expect_right(recorded, eager, 4);
  expect_right(eager, recorded, 4);
}

TEST_P(nested_runs, make_no_room_by_dropping_the_recording_that_waits_for_them) {
  std::size_t one = 0;
  {
    replay_cache cache{dev()};
    expect_right(cache, cache, 1);
    one = cache.report().recordings.back().bytes.total();
    one = std::max(one, cache.report().recordings.front().bytes.total());
  }
  byte_budget budget{one};
  replay_cache cache{dev(), {.budget = &budget}};
  expect_right(cache, cache, 6);
  EXPECT_LE(budget.most_held(), budget.limit());
}

TEST_P(nested_runs, that_are_retired_take_no_recording_around_them_along) {
  replay_cache cache{dev()};
  weighted inner{desk, 5};
  interrupted of{desk, [&](stream_ref on, view<float> made) {
                   cache.run(on, inner.what(), {inner.x.from_host(floats{7})});
                   interrupted::doubles()(on, made);
                 }};
  const step what = of.make();
  const floats in{1, 2};
  EXPECT_EQ(cache.run(s(), what, {of.x.from_host(in)}).how, ran::captured);
  inner.reload(desk, 6);
  EXPECT_EQ(cache.drop_stale(), 1U) << "the inner one alone";
  EXPECT_EQ(cache.run(s(), what, {of.x.from_host(in)}).how, ran::replayed);
}

// The next run of the inner step waits for the side, and so joins it.
TEST_P(nested_runs, join_the_streams_that_their_leases_were_used_on) {
  replay_cache cache{dev()};
  weighted inner{desk, 5};
  const stream side{dev()};
  const buffer<float> kept = desk.filled({0});
  order(s(), side);
  interrupted of{desk, [&](stream_ref on, view<float> made) {
                   const auto run = [&] {
                     return cache.run(on, inner.what(), {inner.x.from_host(floats{7})});
                   };
                   copy(side, read<float>{run()[inner.y].on(side)}, write(kept));
                   run();
                   interrupted::doubles()(on, made);
                 }};
  const step what = of.make();
  const floats in{1, 2};
  for (int i = 0; i < 3; ++i) {
    const step_result done = cache.run(s(), what, {of.x.from_host(in)});
    EXPECT_EQ(done.how, i == 0 ? ran::captured : ran::replayed);
    EXPECT_EQ(desk.values_of(kept), floats{35});
  }
}

TEST_P(nested_runs, of_the_step_itself_are_eager_and_say_why) {
  replay_cache cache{dev()};
  std::optional<step> what;
  floats inner;
  std::string rule;
  int depth = 0;
  const floats in{1, 2};
  interrupted of{desk, [&](stream_ref on, view<float> made) {
                   if (depth == 0 && cache.recordings() != 0) {
                     ++depth;
                     const floats other{10, 20};
                     const step_result done = cache.run(on, *what, {of.x.from_host(other)});
                     rule = done.why->rule;
                     inner = read_back<float>(on, done[of.y].get());
                     --depth;
                   }
                   interrupted::doubles()(on, made);
                 }};
  what.emplace(of.make());
  EXPECT_EQ(cache.run(s(), *what, {of.x.from_host(in)}).how, ran::captured);
  const step_result done = cache.run(s(), *what, {of.x.from_host(in)});
  EXPECT_EQ(done.how, ran::replayed);
  EXPECT_EQ(rule, "recording is running");
  EXPECT_EQ(inner, (floats{60, 120}));
  EXPECT_EQ(desk.values_of(done[of.y].get()), times(6, in));
}

TEST_P(nested_runs, a_break_may_not_put_its_own_cache_to_sleep) {
  replay_cache cache{dev()};
  bool sleeps = false;
  interrupted of{desk, [&](stream_ref, view<float>) {
                   if (sleeps) cache.sleep();
                 }};
  const step what = of.make();
  const floats in{1, 2};
  cache.run(s(), what, {of.x.from_host(in)});
  sleeps = true;
  EXPECT_TRUE(has(message_of<usage_error>([&] { cache.run(s(), what, {of.x.from_host(in)}); }),
                  "do it when the step has run"));
  sleeps = false;
  EXPECT_EQ(cache.run(s(), what, {of.x.from_host(in)}).how, ran::replayed);
  cache.sleep();
  EXPECT_EQ(cache.recordings(), 0U);
}

TEST_P(nested_runs, outside_of_a_break_refuse_the_recording_and_run_eagerly) {
  replay_cache cache{dev()};
  weighted inner{desk, 5};
  signature declared{"outer"};
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const step_result done =
                        cache.run(run, inner.what(), {inner.x.from_host(floats{7})});
                    copy(run, read<float>{done[inner.y].get()}, write(run.make(y, {1})));
                  }};
  for (int i = 0; i < 3; ++i) {
    const step_result done = cache.run(s(), what, {});
    EXPECT_EQ(done.how, ran::eager);
    EXPECT_TRUE(has(done.why->text(), "run it in a break of that body")) << done.why->text();
    EXPECT_EQ(desk.values_of(done[y].get()), floats{35});
  }
}

}  // namespace
}  // namespace reprise::test
