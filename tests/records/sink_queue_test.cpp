// A queue before a sink: what reaches the sink and when, what is counted, and what is said.
#include "reprise/records/sink_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include "tests/records/support.hpp"
#include "tests/records/virtual_time.hpp"

namespace reprise::test {
namespace {

class sink_queue_test : public testing::Test {
 protected:
  sink_queue made(sink_script script = {}, sink_queue_options options = {}) {
    options.name = "the sink";
    options.clock = time.clock();
    return {std::make_unique<scripted_sink>(log, std::move(script)), "run1", std::move(options)};
  }

  virtual_time time;
  std::shared_ptr<sink_log> log = std::make_shared<sink_log>();
};

void hand_over(sink_queue& to, std::uint64_t first, std::uint64_t count) {
  for (const owned_record& record : records_numbered(first, count)) {
    EXPECT_TRUE(to.publish({{record.view()}}));
  }
}

TEST_F(sink_queue_test, opens_its_sink_before_anything_else_and_closes_it_last) {
  {
    sink_queue queue = made();
    EXPECT_EQ(log->events(), std::vector<std::string>{"open run1"});
    hand_over(queue, 0, 3);
    queue.close();
    queue.close();
  }
  EXPECT_EQ(log->events(), (std::vector<std::string>{"open run1", "flush", "close"}));
  EXPECT_EQ(log->got(), records_numbered(0, 3));
}

TEST_F(sink_queue_test, is_not_made_where_the_sink_cannot_be_opened) {
  const std::string line = line_of<usage_error>(
      [&] { made({.open = [](std::string_view) { throw usage_error{"no such place"}; }}); });
  EXPECT_EQ(line, "no such place");
  EXPECT_EQ(log->events(), std::vector<std::string>{"open run1"});
}

TEST_F(sink_queue_test, owns_what_it_was_given) {
  sink_queue queue = made();
  {
    owned_record record = record_number(5);
    queue.publish({{record.view()}});
    record.bytes.assign(record.bytes.size(), std::byte{0xff});
    record.kind = "spoilt";
    record.shape = {9, 9};
  }
  queue.close();
  EXPECT_EQ(log->got(), records_numbered(5, 1));
}

TEST_F(sink_queue_test, refuses_records_that_break_their_schema_and_takes_none_of_the_call) {
  sink_queue queue = made();
  owned_record wrong = record_number(1);
  wrong.bytes.pop_back();
  const std::vector<owned_record> both{record_number(0), wrong};
  EXPECT_TRUE(has(line_of<usage_error>([&] { queue.publish(views(both)); }), "resid_pre:1"));
  wrong = record_number(1);
  wrong.rows = 7;
  EXPECT_TRUE(has(line_of<usage_error>([&] { queue.publish({{wrong.view()}}); }), "7 rows"));
  wrong = record_number(1);
  wrong.shape[0] = wrong.rows = -1;
  line_of<usage_error>([&] { queue.publish({{wrong.view()}}); });
  wrong = record_number(1);
  wrong.kind.clear();
  EXPECT_TRUE(has(line_of<usage_error>([&] { queue.publish({{wrong.view()}}); }), "kind"));
  wrong = record_number(3);
  wrong.shard = 2;
  EXPECT_TRUE(has(line_of<usage_error>([&] { queue.publish({{wrong.view()}}); }), "shard 2 of 2"));
  wrong = record_number(1);
  wrong.shards = 0;
  EXPECT_TRUE(has(line_of<usage_error>([&] { queue.publish({{wrong.view()}}); }), "shard 0 of 0"));
  wrong.shards = 1;
  wrong.shard_axis = -2;
  EXPECT_TRUE(has(line_of<usage_error>([&] { queue.publish({{wrong.view()}}); }), "axis is -2"));
  queue.close();
  EXPECT_EQ(queue.counts().published, 0U);
  EXPECT_TRUE(log->got().empty());
}

TEST_F(sink_queue_test, makes_batches_no_larger_than_was_said) {
  std::vector<std::size_t> sizes;
  sink_queue queue =
      made({.write = [&](std::span<const tap_record> r) { sizes.push_back(r.size()); }},
           {.batch_records = 8});
  queue.publish(views(records_numbered(0, 20)));
  queue.publish(views(records_numbered(20, 1)));
  queue.close();
  EXPECT_EQ(log->got(), records_numbered(0, 21));
  EXPECT_EQ(*std::ranges::max_element(sizes), 8U);
}

TEST_F(sink_queue_test, joins_what_comes_in_small_into_one_batch) {
  std::vector<std::size_t> sizes;
  sink_queue queue =
      made({.write = [&](std::span<const tap_record> r) { sizes.push_back(r.size()); }},
           {.batch_records = 50});
  hand_over(queue, 0, 50);
  log->await(50);
  queue.close();
  EXPECT_EQ(sizes, std::vector<std::size_t>{50});
}

TEST_F(sink_queue_test, that_is_full_drops_what_does_not_fit_and_counts_it_by_point) {
  std::latch go_on{1};
  sink_queue queue = made({.write = [&](std::span<const tap_record>) { go_on.wait(); }},
                          {.most_records = 4, .full = when_full::drop, .loss = when_lost::count});
  hand_over(queue, 0, 4);
  for (const owned_record& record : records_numbered(4, 6)) {
    EXPECT_FALSE(queue.publish({{record.view()}}));
  }
  sink_counts counts = queue.counts();
  EXPECT_EQ(counts.waiting, 4U);
  EXPECT_EQ(counts.dropped, 6U);
  EXPECT_EQ(counts.lost_of,
            (std::map<std::string, std::uint64_t, std::less<>>{{"resid_pre:0", 2},
                                                               {"resid_pre:1", 2},
                                                               {"resid_pre_probe:2", 1},
                                                               {"final_norm@1of2", 1}}));
  go_on.count_down();
  const std::string line = line_of<sink_error>([&] { queue.close(); });
  EXPECT_TRUE(has(line, "\"the sink\" lost 6 of 10 records")) << line;
  EXPECT_TRUE(has(line, "resid_pre:0 2")) << line;
  counts = queue.counts();
  EXPECT_EQ(counts.delivered + counts.lost, counts.published);
  EXPECT_EQ(log->got(), records_numbered(0, 4));
}

TEST_F(sink_queue_test, that_is_full_lets_the_producer_wait_until_there_is_room) {
  std::latch go_on{1};
  sink_queue queue =
      made({.write = [&](std::span<const tap_record>) { go_on.wait(); }}, {.most_records = 4});
  hand_over(queue, 0, 4);
  std::thread producer{[&] { hand_over(queue, 4, 4); }};
  while (queue.counts().waits == 0) std::this_thread::yield();
  EXPECT_EQ(queue.counts().waiting, 4U);
  go_on.count_down();
  producer.join();
  queue.close();
  EXPECT_EQ(log->got(), records_numbered(0, 8));
  EXPECT_EQ(queue.counts().lost, 0U);
}

TEST_F(sink_queue_test, lets_nobody_wait_longer_than_was_said) {
  std::latch go_on{1};
  sink_queue queue = made(
      {.write = [&](std::span<const tap_record>) { go_on.wait(); }},
      {.most_records = 4, .age_limit_us = 0, .wait_limit_us = 1'000, .loss = when_lost::count});
  hand_over(queue, 0, 4);
  std::thread producer{[&] {
    const owned_record late = record_number(4);
    EXPECT_FALSE(queue.publish({{late.view()}}));
  }};
  time.advance_to_next();
  producer.join();
  EXPECT_EQ(time.now_us(), 1'000);
  EXPECT_EQ(queue.counts().waited_us, 1'000);
  EXPECT_EQ(queue.counts().lost, 1U);
  go_on.count_down();
  line_of<sink_error>([&] { queue.close(); });
}

TEST_F(sink_queue_test, takes_one_hand_over_that_is_larger_than_all_its_room) {
  sink_queue queue = made({}, {.most_records = 4, .most_bytes = 1});
  EXPECT_TRUE(queue.publish(views(records_numbered(0, 9))));
  queue.close();
  EXPECT_EQ(log->got(), records_numbered(0, 9));
}

TEST_F(sink_queue_test, pauses_twice_as_long_after_each_failure_and_delivers_when_it_goes_again) {
  std::vector<std::int64_t> tried_at;
  sink_queue queue =
      made({.write =
                [&](std::span<const tap_record>) {
                  tried_at.push_back(time.now_us());
                  if (tried_at.size() < 5) throw sink_error{sink_trouble::away, "nobody answers"};
                }},
           {.age_limit_us = 0, .attempts = 5, .first_pause_us = 100, .longest_pause_us = 300});
  queue.publish(views(records_numbered(0, 2)));
  for (int pause = 0; pause < 4; ++pause) time.advance_to_next();
  log->await(2);
  queue.close();
  EXPECT_EQ(tried_at, (std::vector<std::int64_t>{0, 100, 300, 600, 900}));
  EXPECT_EQ(queue.counts().retries, 4U);
  EXPECT_EQ(queue.counts().lost, 0U);
}

TEST_F(sink_queue_test, that_nobody_answers_loses_a_batch_whole_and_takes_the_next) {
  bool away = true;
  sink_queue queue = made({.write =
                               [&](std::span<const tap_record>) {
                                 if (away) throw sink_error{sink_trouble::away, "nobody answers"};
                               }},
                          {.attempts = 1, .loss = when_lost::count});
  hand_over(queue, 0, 3);
  queue.flush();
  EXPECT_EQ(queue.counts().lost, 3U);
  away = false;
  hand_over(queue, 3, 2);
  queue.flush();
  EXPECT_EQ(log->got(), records_numbered(3, 2));
  EXPECT_TRUE(has(line_of<sink_error>([&] { queue.close(); }), "nobody answers"));
}

TEST_F(sink_queue_test, that_is_done_for_good_is_given_nothing_more) {
  int writes = 0;
  sink_queue queue = made({.write =
                               [&](std::span<const tap_record>) {
                                 ++writes;
                                 throw sink_error{sink_trouble::for_good, "another schema"};
                               }},
                          {.loss = when_lost::count});
  hand_over(queue, 0, 2);
  queue.flush();
  const owned_record late = record_number(2);
  EXPECT_FALSE(queue.publish({{late.view()}}));
  queue.flush();
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(queue.counts().lost, 3U);
  line_of<sink_error>([&] { queue.close(); });
}

TEST_F(sink_queue_test, gives_up_on_a_sink_that_takes_nothing_after_few_attempts) {
  int writes = 0;
  sink_queue queue = made({.write =
                               [&](std::span<const tap_record>) {
                                 ++writes;
                                 throw std::runtime_error{"no space"};
                               }},
                          {.attempts = 2, .first_pause_us = 0, .loss = when_lost::count});
  queue.publish(views(records_numbered(0, 1000)));
  queue.flush();
  EXPECT_EQ(queue.counts().lost, 1000U);
  EXPECT_LE(writes, 2 + 12) << "two of the batch, and no more than it takes to find one of them";
  line_of<sink_error>([&] { queue.close(); });
}

TEST_F(sink_queue_test, says_when_the_sink_cannot_flush) {
  sink_queue queue = made({.flush = [] { throw std::runtime_error{"no space"}; }}, {.attempts = 1});
  hand_over(queue, 0, 1);
  EXPECT_EQ(line_of<sink_error>([&] { queue.flush(); }), "no space");
  EXPECT_TRUE(has(line_of<sink_error>([&] { queue.close(); }), "failed to flush"));
  EXPECT_EQ(queue.counts().delivered, 1U);
}

TEST_F(sink_queue_test, says_when_the_sink_cannot_be_closed) {
  sink_queue queue = made({.close = [] { throw std::runtime_error{"it is stuck"}; }});
  EXPECT_TRUE(has(line_of<sink_error>([&] { queue.close(); }), "it is stuck"));
}

TEST_F(sink_queue_test, that_is_closed_refuses_records_by_name) {
  sink_queue queue = made();
  queue.close();
  const owned_record late = record_number(0);
  EXPECT_TRUE(has(line_of<usage_error>([&] { queue.publish({{late.view()}}); }), "the sink"));
  queue.flush();
}

TEST_F(sink_queue_test, brings_the_records_of_one_request_while_others_wait) {
  sink_queue queue = made({}, {.batch_records = 1});
  hand_over(queue, 0, 40);
  queue.await_request(7);
  const std::vector<owned_record> got = log->got();
  EXPECT_EQ(std::ranges::count(got, 7U, &owned_record::request), 4);
  queue.await_request(12345);
  queue.close();
  EXPECT_EQ(log->got().size(), 40U);
}

TEST_F(sink_queue_test, counts_each_record_once_whatever_many_threads_hand_over) {
  std::atomic<int> calls = 0;
  sink_queue queue = made({.write =
                               [&](std::span<const tap_record>) {
                                 if (++calls % 3 == 0) throw std::runtime_error{"now and then"};
                               }},
                          {.most_records = 16,
                           .batch_records = 8,
                           .full = when_full::drop,
                           .attempts = 1,
                           .loss = when_lost::count});
  std::vector<std::thread> producers;
  for (std::uint64_t t = 0; t < 4; ++t) {
    producers.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < 250; ++n) {
        const owned_record record = record_number(t * 250 + n);
        queue.publish({{record.view()}});
        if (n % 50 == 0) queue.flush();
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  queue.flush();
  const sink_counts counts = queue.counts();
  EXPECT_EQ(counts.published, 1000U);
  EXPECT_EQ(counts.delivered + counts.lost, 1000U);
  EXPECT_EQ(counts.waiting, 0U);
  EXPECT_EQ(counts.waiting_bytes, 0U);
  std::vector<std::uint64_t> numbers;
  for (const owned_record& record : log->got()) numbers.push_back(number_of(record.view()));
  std::ranges::sort(numbers);
  EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end()) << "one came twice";
  EXPECT_EQ(numbers.size(), counts.delivered);
  if (counts.lost != 0) line_of<sink_error>([&] { queue.close(); });
}

TEST_F(sink_queue_test, refuses_bounds_that_let_nothing_through) {
  line_of<usage_error>([&] { made({}, {.most_records = 0}); });
  line_of<usage_error>([&] { made({}, {.attempts = 0}); });
  line_of<usage_error>([&] { made({}, {.age_limit_us = -1}); });
}

TEST_F(sink_queue_test, has_metrics_that_prometheus_reads) {
  sink_queue queue = made();
  hand_over(queue, 0, 3);
  queue.close();
  const std::string text =
      metrics_text(std::vector<named_sink_counts>{{"a \"run\"", queue.counts()}});
  EXPECT_TRUE(has(text, "reprise_sink_records_delivered_total{sink=\"a \\\"run\\\"\"} 3\n"))
      << text;
}

}  // namespace
}  // namespace reprise::test
