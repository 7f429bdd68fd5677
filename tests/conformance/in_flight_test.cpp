// Rule 16: what is destroyed with launches in flight lasts until they are done, and nobody waits.
#include "reprise/device/host_thread.hpp"
#include "reprise/replay/recorder.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/conformance/conformance.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_16, an_executable_that_is_destroyed_in_flight_finishes_its_launches) {
  const auto x = number();
  const graph made = capture(s(), [&](stream_ref c) { append(c, x, 1); });
  std::optional<executable> step{made.instantiate(s())};
  const reports quiet;
  held_stream held{s()};
  step->launch(s());
  step->launch(s());
  step.reset();
  EXPECT_STILL_HELD(held);
  append(s(), x, 2);
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(s(), x), 112);
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
}

TEST_P(rule_16, graphs_and_clones_may_go_with_it) {
  const auto x = number();
  std::vector<node_id> ids;
  std::optional<graph> made{capture(s(), [&](stream_ref c) {
    for (int digit = 1; digit <= 3; ++digit) ids.push_back(append(c, x, digit));
  })};
  std::optional<graph> clone{made->without(std::vector{ids[1]})};
  std::optional<executable> whole{made->instantiate(s())};
  std::optional<executable> part{clone->instantiate(s())};
  held_stream held{s()};
  whole->launch(s());
  part->launch(s());
  clone.reset();
  part.reset();
  made.reset();
  whole.reset();
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(s(), x), 12313);
}

TEST_P(rule_16, an_executable_goes_after_its_launches_on_every_stream) {
  const auto x = number();
  s().synchronize();
  const stream other{dev()};
  std::optional<executable> step{
      capture(s(), [&](stream_ref c) { append(c, x, 3); }).instantiate(s())};
  held_stream held{other};
  step->launch(s());
  s().synchronize();
  step->launch(other);
  step.reset();
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(other, x), 33);
}

// D17: the state of a callback goes once, and not before the last replay has retired.
TEST_P(rule_16, D17_the_state_of_a_host_call_lasts_as_long_as_the_last_launch) {
  auto state = std::make_shared<std::atomic<int>>(0);
  const std::weak_ptr<std::atomic<int>> watch = state;
  std::atomic<int> seen{0};
  std::optional<executable> step{capture(s(), [&](stream_ref c) {
                                   host_call(c, "count", {},
                                             [&seen, kept = std::move(state)] { seen = ++*kept; });
                                 }).instantiate(s())};
  held_stream held{s()};
  step->launch(s());
  step->launch(s());
  step.reset();
  EXPECT_EQ(watch.expired(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  s().synchronize();
  EXPECT_EQ(seen, 2);
  api().settle();
  EXPECT_TRUE(watch.expired());
}

TEST_P(rule_16, what_a_graph_was_given_to_keep_lasts_as_long_as_the_last_launch) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owned;
  const auto x = number();
  std::optional<graph> made{capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    api().keep(c.id(), std::move(owned));
  })};
  std::optional<executable> step{made->instantiate(s())};
  made.reset();
  EXPECT_FALSE(watch.expired()) << "the executable holds it";
  held_stream held{s()};
  step->launch(s());
  step.reset();
  EXPECT_EQ(watch.expired(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  s().synchronize();
  api().settle();
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(value_of(s(), x), 1);
}

TEST_P(rule_16, a_recording_that_dies_waits_for_its_last_replay) {
  adding adder{memory(), s(), 1};
  const step what = adder.make();
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const std::vector<float> one{1};
  recorded done = maker.record(s(), what, {adder.x.from_host(one)});
  ASSERT_TRUE(done.made.has_value());
  event passed{dev()};
  held_stream held{s()};
  ASSERT_TRUE(done.made->replay(s(), what, {adder.x.from_host(one)}).has_value());
  passed.record(s());
  EXPECT_STILL_HELD(held);
  host_thread releasing{dev(), [&] { held.release(); }};
  done.made.reset();
  EXPECT_TRUE(passed.finished());
  releasing.join();
  EXPECT_EQ(read_back(s(), adder.total)[0], 2.0F);
}

// It goes when its last replay has passed; calls that come before that do not wait for it.
TEST_P(rule_16, a_recording_that_is_retired_in_flight_is_waited_for_by_nobody) {
  set_log_sink([](std::string_view) {});
  scaling scaled{memory(), s(), 2.0F};
  scaling plain{memory(), s(), 3.0F};
  const step eager{plain.declared,
                   [&](step_scope& run) {
                     copy(run, read(run[plain.x]), write(run.make(plain.y, run.shape(plain.x))));
                   },
                   eager_only{"plain"}};
  const std::vector<float> values{1, 2, 3};
  replay_cache cache{dev()};
  const auto breach = [&] {
    cache.run(s(), scaled.what, {scaled.x.from_host(values)});
    cache.run(s(), scaled.what, {scaled.x.from_host(values)});
    scaled.weight.version.bump();
  };
  breach();
  for (int i = 0; i < 4; ++i) cache.run(s(), eager, {plain.x.from_host(values)});
  cache.run(s(), scaled.what, {scaled.x.from_host(values)});  // the memory of all that is there
  breach();
  s().synchronize();
  held_stream held{s()};
  EXPECT_EQ(cache.run(s(), scaled.what, {scaled.x.from_host(values)}).how, ran::eager);
  for (int i = 0; i < 3; ++i) cache.run(s(), eager, {plain.x.from_host(values)});
  EXPECT_STILL_HELD(held);
  held.release();
  s().synchronize();
  set_log_sink({});
}

TEST_P(rule_16, settling_waits_for_what_is_in_flight_of_the_destroyed) {
  const auto x = number();
  std::optional<executable> step{
      capture(s(), [&](stream_ref c) { append(c, x, 1); }).instantiate(s())};
  event passed{dev()};
  held_stream held{s()};
  step->launch(s());
  passed.record(s());
  step.reset();
  EXPECT_STILL_HELD(held);
  host_thread releasing{dev(), [&] { held.release(); }};
  api().settle();
  releasing.join();
  s().synchronize();
  EXPECT_TRUE(passed.finished());
  EXPECT_EQ(value_of(s(), x), 1);
}

}  // namespace
}  // namespace reprise::test
