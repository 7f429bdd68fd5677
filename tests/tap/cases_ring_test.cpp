// What the field has met with rings: reserved and fired, warm-ups, slots, waiting, host reads.
#include <chrono>
#include <cstdio>

#include "reprise/device/host_thread.hpp"
#include "reprise/sim/controls.hpp"
#include "reprise/tap/ring.hpp"
#include "tests/records/support.hpp"
#include "tests/support/observe.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::tapped_model;

class tap_cases : public test::monitored {};
MONITORED_ON_ALL_DEVICES(tap_cases);

// So many replays with each set: all of them where that is fast.
int replays_on(const std::string& device) {
  if (test::sanitized) return device == "cpu" ? 300 : 30;
  return device == "cpu" ? 10'000 : 60;
}

TEST_P(tap_cases, T01_what_is_reserved_is_what_fires_however_many_are_enabled) {
  tapped_model model{14, 4};  // 28 taps
  monitor_options how = small();
  how.slots = 128;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  const int replays = replays_on(GetParam());
  for (const char* enabled : {"none", "resid_pre:0-3", "*"}) {
    eye.enable(enabled);
    const tap_counts before = eye.counts();
    std::vector<float> x = test::tap_bench::values(8, 1);
    for (int i = 0; i < replays; ++i) on.run(cache, model, x);
    eye.flush();
    const tap_counts counts = eye.counts();
    const std::uint64_t each = enabled[0] == 'n' ? 0 : enabled[0] == '*' ? 28 : 4;
    const std::uint64_t fired = each * static_cast<std::uint64_t>(replays);
    EXPECT_EQ(counts.planned - before.planned, fired);
    EXPECT_EQ(counts.published - before.published, fired);
    EXPECT_EQ(counts.records - before.records, fired);
    EXPECT_EQ(counts.reserved_bytes - before.reserved_bytes, fired * (32 + 16));
    EXPECT_EQ(counts.reserved_bytes, counts.published_bytes);
    EXPECT_EQ(counts.drained_bytes, counts.published_bytes);
    EXPECT_EQ(counts.lost + counts.dropped, 0U);
    expect_sums(counts);
  }
  EXPECT_EQ(cache.counts().captured, 2U) << "one with producers and one without, and none anew";
}

// Through a ring of three steps, with a thread that drains it: each once, in order, with its bytes.
// REPRISE_RECORDS=10000000 is the long form; it says how many records there were.
TEST_P(tap_cases, T06_many_records_arrive_each_once_in_order_and_whole) {
  constexpr int layers = 18, points = 2 * layers;
  constexpr std::int64_t width = 4;
  const std::uint64_t few = test::sanitized || GetParam() != "cpu" ? 1'800 : 36'000;
  const std::uint64_t all_steps = test::records_to_send(few) / points;
  tapped_model model{layers, width};
  monitor_options how = small();
  how.ring_bytes = 3 * points * (16 + marker_bytes);
  how.slots = 3 * points;
  how.most_points = points;
  how.thread = true;
  how.wait_limit_ms = 60'000;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  std::uint64_t seen = 0, wrong = 0;
  eye.deliver_to([&](const tap_record& one) {
    const std::uint64_t step = seen / points;
    const int place = static_cast<int>(seen % points);
    const int added = place / 2 + place % 2;  // layers that have raised it by then
    bool right = one.step == step && one.layer == place / 2 &&
                 one.kind == (place % 2 == 0 ? "resid_pre" : "resid_post") &&
                 one.bytes.size() == width * sizeof(float);
    if (right) {
      std::vector<float> expected = test::tap_bench::values(width, step);
      for (float& value : expected) value += static_cast<float>(added * (added + 1) / 2);
      right = std::memcmp(one.bytes.data(), expected.data(), one.bytes.size()) == 0;
    }
    wrong += right ? 0 : 1;
    ++seen;
  });
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (std::uint64_t step = 0; step < all_steps; ++step) {
    std::vector<float> x = test::tap_bench::values(width, step);
    on.run(cache, model, x);
  }
  eye.flush();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(seen, all_steps * points);
  EXPECT_EQ(eye.counts().lost + eye.counts().dropped, 0U);
  EXPECT_EQ(cache.counts().replayed, all_steps - 1);
  if (test::is_long_form()) {
    std::printf("%s: %llu records, each once, %llu wrong, after %llu waits for room\n",
                GetParam().c_str(), static_cast<unsigned long long>(seen),
                static_cast<unsigned long long>(wrong),
                static_cast<unsigned long long>(eye.counts().reserve_waits));
  }
}

TEST(T01_a_ring_account, that_would_go_below_nothing_says_so_and_stays_as_it_is) {
  ring_account account{256, 4};
  account.promise(64, 1);
  EXPECT_THROW(account.give_back(80, 1), error);
  EXPECT_THROW(account.give_back(64, 2), error);
  EXPECT_EQ(account.room_for(192, 3), room::fits);
  EXPECT_EQ(account.room_for(208, 1), room::fits_after_flush);
  EXPECT_EQ(account.room_for(16, 4), room::fits_after_flush);
  EXPECT_EQ(account.room_for(272, 1), room::never_fits);
  EXPECT_EQ(account.room_for(16, 5), room::never_fits);
}

// Three captures, each with its warm-ups, while producers are live and nothing is planned.
TEST_P(tap_cases, T02_warm_ups_publish_nothing_and_leave_no_debt) {
  tapped_model model{3, 4};
  monitor_options how = small();
  how.slots = 1024;
  how.flights = 128;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (std::int64_t rows = 1; rows <= 3; ++rows) {
    EXPECT_EQ(cache.prepare(on.work, model.what, {dims{rows, 4}}), nullptr);
  }
  EXPECT_GE(model.runs, 6) << "warm-ups too";
  on.work.synchronize();
  eye.flush();
  EXPECT_EQ(eye.counts().steps + eye.counts().planned + eye.counts().reserved_bytes, 0U);
  for (int i = 0; i < 100; ++i) {
    run(cache, eye, model, 1 + i % 3, "*");
    const tap_counts counts = eye.counts();
    ASSERT_LE(counts.drained_bytes, counts.published_bytes);
    ASSERT_LE(counts.published_bytes, counts.reserved_bytes);
  }
  EXPECT_EQ(eye.counts().reserve_waits, 0U) << "nothing stands in the way";
  eye.flush();
  expect_all();
  EXPECT_EQ(book->records.front().about.step, 0U);
  EXPECT_EQ(cache.counts().captured, 3U);
  EXPECT_EQ(cache.counts().replayed, 97U);
  EXPECT_EQ(cache.counts().eager, 0U);
  EXPECT_EQ(eye.counts().lost, 0U);
  EXPECT_EQ(eye.counts().reserved_bytes, eye.counts().drained_bytes);
}

TEST_P(tap_cases, T03_a_record_arrives_though_nothing_follows_it) {
  tapped_model model{1, 4};
  monitor_options how = small();
  how.thread = true;
  monitor eye{on.opened, how};
  eye.watch({"resid_pre", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  run(cache, eye, model, 1, "resid_pre");
  const device_ref dev = on.opened;
  const auto limit = host_time(dev) + std::chrono::seconds{10};
  wait_until(dev, [&] { return eye.counts().records == 1 || host_time(dev) > limit; });
  EXPECT_EQ(eye.counts().records, 1U);
  eye.stop();
  expect_all();
}

// Whoever flushes finds every record at the sink, each once, however slow that is.
TEST_P(tap_cases, T09_a_flush_returns_when_the_sink_has_all_of_it) {
  tapped_model model{2, 4};
  monitor_options how = small();
  how.thread = true;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int i = 0; i < 25; ++i) run(cache, eye, model, 1, "*");
  eye.flush();
  expect_all();
  run(cache, eye, model, 1, "*");
  eye.await_request(no_request);
  expect_all();
}

TEST_P(tap_cases, T12_both_limits_of_the_ring_are_looked_at) {
  tapped_model model{4, 4};  // 8 taps of 16 + 16 bytes
  replay_cache cache{on.opened};
  std::vector<float> x = test::tap_bench::values(4, 1);
  const auto told = [&](std::uint64_t slots, std::size_t ring_bytes, bool strict) {
    monitor_options how = small();
    how.slots = slots;
    how.ring_bytes = ring_bytes;
    how.allow_eager_fallback = !strict;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    send_here(eye);
    cache.stop_observing();
    cache.observe(eye.observer());
    const step_result done = on.run(cache, model, x);
    eye.flush();
    EXPECT_EQ(eye.counts().records, 8U);
    return done.how == ran::eager ? done.why->text() : std::string{};
  };
  EXPECT_EQ(told(8, 256, false), "") << "exactly as many fit";
  EXPECT_TRUE(test::has(told(7, 256, false), "taps never fit"));
  EXPECT_TRUE(test::has(told(8, 240, false), "240 bytes of ring"));
  const std::string line = test::message_of<usage_error>([&] { told(7, 256, true); });
  EXPECT_TRUE(test::has(line, "7 slots")) << line;
  EXPECT_FALSE(test::has(line, "\n")) << line;
}

TEST_P(tap_cases, T12_a_tensor_larger_than_the_ring_goes_straight_to_the_host) {
  tapped_model model{2, 4};
  monitor_options how = small();
  how.ring_bytes = 32;
  monitor eye{on.opened, how};
  eye.watch({"resid_pre", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int i = 0; i < 12; ++i) run(cache, eye, model, 5, "resid_pre");
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().direct, 24U);
  expect_sums(eye.counts());
}

TEST_P(tap_cases, T13_a_full_ring_ends_a_wait_and_never_holds_the_stream) {
  tapped_model model{2, 4};
  for (const bool drop : {true, false}) {
    monitor_options how = small();
    how.ring_bytes = 128;  // two steps
    how.markers = false;
    how.flights = 4;
    how.drop_when_full = drop;
    how.wait_limit_ms = 20;
    monitor eye{on.opened, how};
    eye.watch({"resid_pre", row_mode::all()});
    send_here(eye);
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    book->records.clear();
    std::vector<float> x = test::tap_bench::values(8, 1);
    for (int i = 0; i < 40; ++i) {
      EXPECT_NE(on.run(cache, model, x).how, ran::eager);
      if (drop && i % 4 == 3) eye.flush();
    }
    eye.flush();
    const tap_counts counts = eye.counts();
    expect_sums(counts);
    EXPECT_EQ(counts.lost, 0U);
    EXPECT_EQ(counts.published + counts.dropped, 80U);
    EXPECT_EQ(book->records.size(), counts.published);
    EXPECT_EQ(counts.dropped == 0, !drop) << "who waits drains";
  }
}

// Nothing publishes while the stream is held, so whoever waits does so in vain, and no longer than
// the limit.
TEST_P(tap_cases, T13_a_wait_in_vain_ends_at_its_limit_in_a_drop) {
  sim::controls* const sim = sim::controls_of(on.opened);
  if (sim == nullptr) GTEST_SKIP() << "only a simulated device is held for ever";
  tapped_model model{2, 4};
  monitor_options how = small();
  how.ring_bytes = 128;
  how.markers = false;
  how.wait_limit_ms = 20;
  monitor eye{on.opened, how};
  eye.watch({"resid_pre", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  std::vector<float> x = test::tap_bench::values(8, 1);
  on.run(cache, model, x);
  eye.flush();
  sim->hold(static_cast<stream_ref>(on.work).id());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(on.run(cache, model, x).how, ran::replayed);
  tap_counts counts = eye.counts();
  EXPECT_EQ(counts.timed_out, 2U);
  EXPECT_EQ(counts.dropped, 4U);
  EXPECT_GE(counts.waited_ms, 40U);
  sim->release(static_cast<stream_ref>(on.work).id());
  on.run(cache, model, x);
  eye.flush();
  counts = eye.counts();
  EXPECT_EQ(counts.published, 2U + 4 + 2);
  EXPECT_EQ(counts.lost, 0U);
}

}  // namespace
}  // namespace reprise
