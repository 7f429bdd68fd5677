// Several sinks at once: what one does is no affair of the others.
#include "reprise/records/multiplexer.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <stdexcept>

#include "reprise/records/callback_sink.hpp"
#include "reprise/records/count_sink.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/records/support.hpp"
#include "tests/records/virtual_time.hpp"

namespace reprise::test {
namespace {

class multiplexer_test : public testing::Test {
 protected:
  sink_queue_options options(std::string name, when_lost loss = when_lost::raise) {
    sink_queue_options made;
    made.name = std::move(name);
    made.clock = time.clock();
    made.attempts = 1;
    made.loss = loss;
    return made;
  }

  virtual_time time;
  std::shared_ptr<sink_log> first = std::make_shared<sink_log>();
  std::shared_ptr<sink_log> second = std::make_shared<sink_log>();
};

sink_script always_failing() {
  return {.write = [](std::span<const tap_record>) {
    throw sink_error{sink_trouble::away, "nobody answers"};
  }};
}

TEST_F(multiplexer_test, gives_every_sink_every_record) {
  sink_multiplexer all{"run1"};
  all.add(std::make_unique<scripted_sink>(first), options("first"));
  all.add(std::make_unique<scripted_sink>(second), options("second"));
  EXPECT_EQ(all.publish(views(records_numbered(0, 30))), 2U);
  all.flush();
  EXPECT_EQ(first->got(), records_numbered(0, 30));
  EXPECT_EQ(second->got(), records_numbered(0, 30));
  all.close();
  EXPECT_EQ(first->events(), (std::vector<std::string>{"open run1", "flush", "flush", "close"}));
}

TEST_F(multiplexer_test, a_sink_that_fails_neither_stops_the_others_nor_the_run) {
  sink_multiplexer all{"run1"};
  all.add(std::make_unique<scripted_sink>(first, always_failing()), options("failing"));
  all.add(std::make_unique<scripted_sink>(second), options("sound"));
  all.publish(views(records_numbered(0, 10)));
  EXPECT_TRUE(has(line_of<sink_error>([&] { all.flush(); }), "failing"));
  EXPECT_EQ(second->got(), records_numbered(0, 10));
  EXPECT_EQ(second->events().back(), "flush");
  all.publish(views(records_numbered(10, 10)));
  EXPECT_TRUE(has(line_of<sink_error>([&] { all.close(); }), "lost 20 of 20"));
  EXPECT_EQ(second->got(), records_numbered(0, 20));
  EXPECT_EQ(second->events().back(), "close");
  EXPECT_EQ(all.queues()[0]->counts().lost, 20U);
  EXPECT_EQ(all.queues()[1]->counts().delivered, 20U);
}

TEST_F(multiplexer_test, gives_all_sinks_what_came_with_a_call_that_raises) {
  sink_multiplexer all{"run1"};
  bool fails = true;
  all.add(std::make_unique<scripted_sink>(
              first, sink_script{.write =
                                     [&](std::span<const tap_record>) {
                                       if (std::exchange(fails, false)) {
                                         throw sink_error{sink_trouble::away, "nobody answers"};
                                       }
                                     }}),
          options("failed once"));
  all.add(std::make_unique<scripted_sink>(second), options("sound"));
  all.publish(views(records_numbered(0, 1)));
  time.advance(1'000'000);
  while (all.queues()[0]->counts().lost == 0) std::this_thread::yield();
  const std::vector<owned_record> next = records_numbered(1, 3);
  line_of<sink_error>([&] { all.publish(views(next)); });
  all.flush();
  EXPECT_EQ(first->got(), next);
  EXPECT_EQ(second->got(), records_numbered(0, 4));
  line_of<sink_error>([&] { all.close(); });
}

// What a queue raises is of the past; it may raise once more before the records at hand are its.
TEST_F(multiplexer_test, hands_over_what_came_with_a_call_that_raises_more_than_once) {
  sink_multiplexer all{"run1"};
  std::latch both_wait{1};
  std::latch second_may_fail{1};
  const auto fails = [&](std::span<const tap_record> records) {
    number_of(records[0]) == 0 ? both_wait.wait() : second_may_fail.wait();
    throw sink_error{sink_trouble::away, "nobody answers"};
  };
  sink_queue_options one_by_one = options("failing");
  one_by_one.age_limit_us = 0;
  one_by_one.batch_records = 1;
  all.add(std::make_unique<scripted_sink>(first, sink_script{.write = fails}), one_by_one);
  // Between the first time that the other raises and its second, this one looks at its clock.
  sink_queue_options sound = options("sound");
  bool armed = false;
  const std::thread::id here = std::this_thread::get_id();
  const auto await_lost = [&](std::uint64_t lost) {
    while (all.queues()[0]->counts().lost != lost) std::this_thread::yield();
  };
  sound.clock.now_us = [&] {
    if (std::this_thread::get_id() == here && std::exchange(armed, false)) {
      second_may_fail.count_down();
      await_lost(2);
    }
    return time.now_us();
  };
  all.add(std::make_unique<scripted_sink>(second), sound);
  all.publish(views(records_numbered(0, 1)));
  all.publish(views(records_numbered(1, 1)));
  both_wait.count_down();
  await_lost(1);
  armed = true;
  line_of<sink_error>([&] { all.publish(views(records_numbered(2, 1))); });
  EXPECT_FALSE(armed);
  EXPECT_TRUE(has(line_of<sink_error>([&] { all.close(); }), "lost 3 of 3 records"));
  EXPECT_EQ(second->got(), records_numbered(0, 3));
}

TEST_F(multiplexer_test, a_full_sink_is_waited_for_after_the_others_have_their_records) {
  sink_multiplexer all{"run1"};
  std::latch go_on{1};
  sink_queue_options small = options("full");
  small.most_records = 2;
  small.age_limit_us = 0;
  all.add(std::make_unique<scripted_sink>(
              first, sink_script{.write = [&](std::span<const tap_record>) { go_on.wait(); }}),
          small);
  sink_queue_options prompt = options("prompt");
  prompt.age_limit_us = 0;
  all.add(std::make_unique<scripted_sink>(second), prompt);
  all.publish(views(records_numbered(0, 2)));
  std::thread producer{[&] { all.publish(views(records_numbered(2, 2))); }};
  second->await(4);
  go_on.count_down();
  producer.join();
  all.close();
  EXPECT_EQ(first->got(), records_numbered(0, 4));
}

TEST_F(multiplexer_test, that_cannot_open_one_sink_keeps_those_it_has) {
  sink_multiplexer all{"run1"};
  all.add(std::make_unique<scripted_sink>(second), options("sound"));
  line_of<usage_error>([&] {
    all.add(std::make_unique<scripted_sink>(
                first, sink_script{.open = [](std::string_view) { throw usage_error{"no"}; }}),
            options("failing"));
  });
  all.publish(views(records_numbered(0, 3)));
  all.await_request(1);
  EXPECT_EQ(second->got(), records_numbered(0, 3));
  EXPECT_TRUE(has(all.metrics(), "records_published_total{sink=\"sound\"} 3"));
  all.add(std::make_unique<scripted_sink>(first), options("late"));
  // Lines of one metric stand together, behind what kind it is.
  EXPECT_TRUE(has(all.metrics(),
                  "# TYPE reprise_sink_queue_records gauge\n"
                  "reprise_sink_queue_records{sink=\"sound\"} 0\n"
                  "reprise_sink_queue_records{sink=\"late\"} 0\n"
                  "# TYPE"))
      << all.metrics();
  all.close();
}

TEST_F(multiplexer_test, without_sinks_takes_records_and_does_nothing) {
  sink_multiplexer all{"run1"};
  EXPECT_EQ(all.publish(views(records_numbered(0, 3))), 0U);
  all.flush();
  all.close();
}

TEST_F(multiplexer_test, count_and_callback_sinks_see_what_was_sent) {
  std::vector<std::string> lines;
  const log_sink before = set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  const auto tallies = std::make_shared<record_tallies>();
  std::vector<std::uint64_t> numbers;
  {
    sink_multiplexer all{"run1"};
    all.add(count_sink(tallies), options("count"));
    all.add(callback_sink([&](const tap_record& r) { numbers.push_back(number_of(r)); }),
            options("callback"));
    all.publish(views(records_numbered(0, 4)));
    all.close();
  }
  set_log_sink(before);
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  // Rows of 4 elements: one f32, two bf16, three i64, one f32.
  EXPECT_EQ(tallies->by_point(),
            (std::map<std::string, record_tally>{{"resid_pre:0", {1, 1, 16}},
                                                 {"resid_pre:1", {1, 2, 16}},
                                                 {"resid_pre_probe:2", {1, 3, 96}},
                                                 {"final_norm@0of2", {1, 1, 16}}}));
  EXPECT_EQ(lines, std::vector<std::string>{"run \"run1\": 4 records, 7 rows, 144 bytes"});
  EXPECT_TRUE(has(line_of<usage_error>([] { callback_sink({}); }), "without a function"));
}

}  // namespace
}  // namespace reprise::test
