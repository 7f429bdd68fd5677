// Rule 15: the recording, not the executable, is the unit of order; and one executable runs one
// launch at a time.
#include "reprise/device/host_thread.hpp"
#include "reprise/replay/recorder.hpp"
#include "tests/conformance/conformance.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_15, D8_one_executable_on_two_streams_runs_one_launch_at_a_time) {
  const auto x = number();
  s().synchronize();
  const stream other{dev()};
  event done{dev()};
  const executable step = capture(s(), [&](stream_ref c) {
                            append(c, x, 1);
                            append(c, x, 2);
                          }).instantiate(s());
  held_stream held{s()};
  step.launch(s());
  step.launch(other);
  done.record(other);
  EXPECT_EQ(done.finished(), !runs_later()) << "the second launch is behind the first";
  EXPECT_STILL_HELD(held);
  held.release();
  s().synchronize();
  EXPECT_EQ(value_of(other, x), 1212);
}

TEST_P(rule_15, a_graph_is_launched_on_streams_it_was_not_captured_on) {
  const auto x = number();
  s().synchronize();
  const stream other{dev()};
  const executable step = capture(s(), [&](stream_ref c) { append(c, x, 4); }).instantiate(s());
  step.launch(other);
  step.launch(other);
  EXPECT_EQ(value_of(other, x), 44);
}

TEST_P(rule_15, a_graph_is_launched_from_a_thread_that_never_called_the_device) {
  const auto x = number();
  const executable step = capture(s(), [&](stream_ref c) { append(c, x, 6); }).instantiate(s());
  host_thread{dev(), [&] { step.launch(s()); }}.join();
  EXPECT_EQ(value_of(s(), x), 6);
}

// Recording runs on a stream of its own: it begins behind the caller's work, and the caller's next
// work is behind it.
TEST_P(rule_15, a_recording_comes_between_the_works_around_it) {
  adding adder{memory(), s(), 1000};
  const step what = adder.make();
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const std::vector<float> ones(1000, 1.0F);
  for (int i = 0; i < 10; ++i) fill(s(), write<float>{adder.total}, static_cast<float>(i));
  recorded done = maker.record(s(), what, {adder.x.from_host(ones)});
  ASSERT_TRUE(done.made.has_value());
  const auto second = done.made->replay(s(), what, {adder.x.from_host(ones)});
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(read_back(s(), adder.total), std::vector<float>(1000, 11.0F));
}

// Each replay has its own inputs, though the second is asked for before the first has run.
TEST_P(rule_15, a_replay_on_another_stream_waits_for_the_last_one) {
  adding adder{memory(), s(), 3};
  const step what = adder.make();
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  std::vector<float> values{0, 0, 0};
  recorded done = maker.record(s(), what, {adder.x.from_host(values)});
  ASSERT_TRUE(done.made.has_value());
  for (int i = 0; i < 8; ++i) done.made->replay(s(), what, {adder.x.from_host(values)});
  const stream other{dev()};
  const pinned<float> out{dev(), 3};
  event passed{dev()};
  other.synchronize();
  held_stream held{s()};
  values = {1, 0, 0};
  ASSERT_TRUE(done.made->replay(s(), what, {adder.x.from_host(values)}).has_value());
  values = {0, 10, 0};
  const auto second = done.made->replay(other, what, {adder.x.from_host(values)});
  ASSERT_TRUE(second.has_value());
  copy(other, read<float>{(*second)[adder.sum].get()}, write<float>{out});
  passed.record(other);
  EXPECT_EQ(passed.finished(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  passed.synchronize();
  EXPECT_EQ((std::vector<float>{out[0], out[1], out[2]}), (std::vector<float>{1, 10, 0}));
}

TEST_P(rule_15, replays_that_change_streams_each_time_keep_their_order) {
  adding adder{memory(), s(), 1};
  const step what = adder.make();
  replay_cache cache{dev()};
  const stream other{dev()};
  std::vector<float> value{1};
  std::vector<float> sums;
  for (int i = 0; i < 20; ++i) {
    const stream_ref on = i % 2 == 0 ? s() : stream_ref{other};
    const step_result done = cache.run(on, what, {adder.x.from_host(value)});
    sums.push_back(read_back(on, done[adder.sum].get())[0]);
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], i + 1.0F);
  EXPECT_EQ(cache.counts().replayed, 19U);
}

TEST_P(rule_15, eager_runs_on_another_stream_wait_for_the_last_one) {
  adding adder{memory(), s(), 1};
  const step what = adder.make();
  replay_cache cache{dev(), {.record = false}};
  std::vector<float> value{0};
  for (int i = 0; i < 8; ++i) cache.run(s(), what, {adder.x.from_host(value)});
  const stream other{dev()};
  event passed{dev()};
  other.synchronize();
  held_stream held{s()};
  value = {1};
  cache.run(s(), what, {adder.x.from_host(value)});
  value = {10};
  cache.run(other, what, {adder.x.from_host(value)});
  passed.record(other);
  EXPECT_EQ(passed.finished(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  passed.synchronize();
  EXPECT_EQ(read_back(s(), adder.total)[0], 11.0F);
}

}  // namespace
}  // namespace reprise::test
