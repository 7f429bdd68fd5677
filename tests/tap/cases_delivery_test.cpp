// What the field has met with records on their way: rare ones that come late, and a flush that
// returns before the sink has them. Queues wait by a time that the test moves.
#include "reprise/device/host_thread.hpp"
#include "reprise/records/sink_queue.hpp"
#include "tests/records/support.hpp"
#include "tests/records/virtual_time.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::owned_record;
using test::tapped_model;

class delivery_cases : public test::monitored {
 protected:
  // Behind a queue whose time is this test's.
  void send_through_queue(monitor& eye, test::sink_script script = {}) {
    sink_queue_options options;
    options.age_limit_us = 500'000;
    options.clock = time.clock();
    eye.send_to(std::make_unique<test::scripted_sink>(log, std::move(script)), options);
  }

  test::virtual_time time;
  std::shared_ptr<test::sink_log> log = std::make_shared<test::sink_log>();
};
MONITORED_ON_ALL_DEVICES(delivery_cases);

// 64 bytes, and then no further replay, flush or other call: time alone goes on.
TEST_P(delivery_cases, T03_one_record_and_nothing_behind_it_is_there_within_the_age_limit) {
  tapped_model model{1, 16};
  monitor_options how = small();
  how.thread = true;
  monitor eye{on.opened, how};
  eye.watch({"resid_post", row_mode::all()});
  send_through_queue(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  eye.enable("another_kind");  // recorded with producers, all of them off
  std::vector<float> x = test::tap_bench::values(16, 3);
  on.run(cache, model, x);
  eye.enable("*");
  EXPECT_EQ(on.run(cache, model, x).how, ran::replayed);
  const device_ref dev = on.opened;
  const auto limit = host_time(dev) + std::chrono::seconds{10};
  wait_until(dev, [&] { return eye.counts().records == 1 || host_time(dev) > limit; });
  ASSERT_EQ(eye.counts().records, 1U) << "the drain has handed it on";
  EXPECT_EQ(log->got().size(), 0U) << "it waits for others to come";
  time.advance_to_next();
  log->await(1);
  EXPECT_EQ(time.now_us(), 500'000);
  const std::vector<owned_record> got = log->got();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].kind, "resid_post");
  EXPECT_EQ(got[0].step, 1U);
  EXPECT_EQ(got[0].bytes.size(), 64U);
  EXPECT_EQ(eye.counts().flushes, 0U);
}

// 100 records to a sink that takes 10 units of time for each.
TEST_P(delivery_cases, T09_a_flush_ends_when_a_slow_sink_has_every_record_once) {
  tapped_model model{2, 4};
  monitor_options how = small();
  how.thread = true;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_through_queue(eye, {.write = [&](std::span<const tap_record> records) {
                       time.advance(10 * static_cast<std::int64_t>(records.size()));
                     }});
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int i = 0; i < 25; ++i) run(cache, eye, model, 1, "*");
  eye.flush();
  const std::vector<owned_record> got = log->got();
  ASSERT_EQ(got.size(), 100U);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].kind, expected[i].kind);
    EXPECT_EQ(got[i].layer, expected[i].layer);
    EXPECT_EQ(got[i].step, expected[i].step);
    EXPECT_EQ(std::memcmp(got[i].bytes.data(), expected[i].values.data(), 16), 0) << i;
  }
  EXPECT_GE(time.now_us(), 1000);
}

}  // namespace
}  // namespace reprise
