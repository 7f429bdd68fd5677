// What the field has met with sinks, each case under its number.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "reprise/records/callback_sink.hpp"
#include "reprise/records/multiplexer.hpp"
#include "tests/records/support.hpp"
#include "tests/records/virtual_time.hpp"

namespace reprise::test {
namespace {

class sink_cases : public testing::Test {
 protected:
  sink_queue_options options() {
    sink_queue_options made;
    made.name = "the sink";
    made.clock = time.clock();
    made.first_pause_us = 0;
    return made;
  }

  virtual_time time;
  std::shared_ptr<sink_log> log = std::make_shared<sink_log>();
};

TEST_F(sink_cases, T3_a_rare_record_reaches_the_sink_within_the_age_limit_and_without_traffic) {
  sink_queue_options with = options();
  with.age_limit_us = 500'000;
  sink_queue queue{std::make_unique<scripted_sink>(log), "run1", with};
  owned_record rare = record_number(3);
  rare.shape = {1, 16};
  rare.rows = 1;
  rare.type = dtype::f32;
  rare.bytes.assign(64, std::byte{1});
  queue.publish({{rare.view()}});
  time.advance_to_next();
  log->await(1);
  EXPECT_EQ(log->got(), std::vector<owned_record>{rare});
  EXPECT_EQ(time.now_us(), 500'000);
  queue.flush();
  EXPECT_EQ(queue.counts().longest_lag_us, 500'000);
  queue.close();
}

TEST_F(sink_cases, T3_the_age_is_that_of_the_oldest_record_that_waits) {
  sink_queue_options with = options();
  with.age_limit_us = 100;
  sink_queue queue{std::make_unique<scripted_sink>(log), "run1", with};
  queue.publish(views(records_numbered(0, 1)));
  time.advance(60);
  queue.publish(views(records_numbered(1, 1)));
  time.advance_to_next();
  EXPECT_EQ(time.now_us(), 100);
  log->await(2);
  queue.close();
}

TEST_F(sink_cases, T8_the_fifth_of_100_records_fails_and_the_other_99_arrive) {
  sink_queue_options with = options();
  with.loss = when_lost::count;
  sink_queue queue{callback_sink([&](const tap_record& record) {
                     if (number_of(record) == 4) throw std::runtime_error{"a bad insert"};
                     log->note({{record}});
                   }),
                   "run1", with};
  for (const owned_record& record : records_numbered(0, 100)) queue.publish({{record.view()}});
  queue.flush();
  const sink_counts counts = queue.counts();
  EXPECT_EQ(counts.lost, 1U);
  EXPECT_EQ(counts.delivered, 99U);
  EXPECT_EQ(counts.delivered + counts.lost, counts.published);
  std::vector<owned_record> expected = records_numbered(0, 100);
  expected.erase(expected.begin() + 4);
  EXPECT_EQ(log->got(), expected);
  const std::string line = line_of<sink_error>([&] { queue.close(); });
  EXPECT_TRUE(has(line, "lost 1 of 100 records (resid_pre:0 1): a bad insert")) << line;
}

TEST_F(sink_cases, T8_one_bad_record_costs_no_more_where_a_sink_takes_all_or_nothing) {
  for (const std::uint64_t bad : {0U, 1U, 4U, 63U, 64U, 98U, 99U}) {
    auto got = std::make_shared<sink_log>();
    sink_queue_options with = options();
    with.loss = when_lost::count;
    sink_queue queue{
        std::make_unique<scripted_sink>(
            got, sink_script{.write =
                                 [&](std::span<const tap_record> records) {
                                   if (std::ranges::count(records, bad, number_of) != 0) {
                                     throw std::runtime_error{"a bad insert"};
                                   }
                                 }}),
        "run1", with};
    queue.publish(views(records_numbered(0, 100)));
    queue.flush();
    std::vector<owned_record> expected = records_numbered(0, 100);
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(bad));
    EXPECT_EQ(got->got(), expected) << "bad: " << bad;
    EXPECT_EQ(queue.counts().lost, 1U);
    line_of<sink_error>([&] { queue.close(); });
  }
}

TEST_F(sink_cases, T8_by_policy_the_error_reaches_the_producers_next_call_once) {
  sink_queue queue{callback_sink([&](const tap_record& record) {
                     if (number_of(record) == 4) throw std::runtime_error{"a bad insert"};
                     log->note({{record}});
                   }),
                   "run1", options()};
  queue.publish(views(records_numbered(0, 5)));
  EXPECT_TRUE(has(line_of<sink_error>([&] { queue.flush(); }), "a bad insert"));
  const std::vector<owned_record> more = records_numbered(5, 95);
  EXPECT_TRUE(queue.publish(views(more)));
  queue.flush();
  EXPECT_EQ(queue.counts().delivered, 99U);
  line_of<sink_error>([&] { queue.close(); });
}

TEST_F(sink_cases, T8_a_call_that_raises_took_nothing_and_may_be_made_again) {
  sink_queue queue{callback_sink([&](const tap_record& record) {
                     if (number_of(record) == 0) throw std::runtime_error{"a bad insert"};
                     log->note({{record}});
                   }),
                   "run1", options()};
  queue.publish(views(records_numbered(0, 2)));
  try {
    queue.flush();
  } catch (const sink_error&) {
  }
  queue.publish(views(records_numbered(0, 1)));
  while (queue.counts().lost < 2) time.advance(1'000'000);
  const std::vector<owned_record> next = records_numbered(2, 3);
  line_of<sink_error>([&] { queue.publish(views(next)); });
  EXPECT_EQ(queue.counts().published, 3U);
  EXPECT_TRUE(queue.publish(views(next)));
  line_of<sink_error>([&] { queue.close(); });
  EXPECT_EQ(log->got(), records_numbered(1, 4));
}

TEST_F(sink_cases, T9_all_100_records_are_there_when_flush_returns_each_once) {
  sink_queue_options with = options();
  with.batch_records = 7;
  sink_queue queue{callback_sink([&](const tap_record& record) {
                     time.advance(10);  // a slow sink
                     log->note({{record}});
                   }),
                   "run1", with};
  for (const owned_record& record : records_numbered(0, 100)) queue.publish({{record.view()}});
  queue.flush();
  EXPECT_EQ(log->got(), records_numbered(0, 100));
  EXPECT_EQ(queue.counts().delivered, 100U);
  queue.close();
  EXPECT_EQ(log->got().size(), 100U);
}

TEST_F(sink_cases, T9_flush_returns_after_the_sinks_own_flush_and_not_before) {
  sink_queue queue{std::make_unique<scripted_sink>(log), "run1", options()};
  queue.publish(views(records_numbered(0, 5)));
  queue.flush();
  EXPECT_EQ(log->events(), (std::vector<std::string>{"open run1", "flush"}));
  EXPECT_EQ(log->got().size(), 5U);
  queue.close();
}

}  // namespace
}  // namespace reprise::test
