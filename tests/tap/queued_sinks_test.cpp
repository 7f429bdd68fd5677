// Sinks of a monitor stand behind queues: a flush ends at the sink, a loss is counted and told, and
// a sink that is slow holds nobody up but through the room that there is.
#include <atomic>
#include <latch>
#include <thread>

#include "reprise/base/mutex.hpp"
#include "tests/records/virtual_time.hpp"
#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::keeping_sink;
using test::kept_book;
using test::tapped_model;

// Time stands still unless a sink moves it: nothing leaves a queue for its age.
class queued_sinks : public test::monitored {
 protected:
  sink_queue_options queue(const char* name, when_lost loss = when_lost::raise) {
    sink_queue_options how;
    how.name = name;
    how.attempts = 1;
    how.loss = loss;
    how.clock = time.clock();
    return how;
  }
  // A device that owns time runs one host thread at a time: none of them may wait for a sink.
  bool owns_time() const { return device_ref{on.opened}.api().threads() != nullptr; }

  test::virtual_time time;
};
MONITORED_ON_ALL_DEVICES(queued_sinks);

// Takes ten microseconds for each record.
class slow_sink final : public record_sink {
 public:
  slow_sink(std::shared_ptr<kept_book> in, test::virtual_time& time) : in_{in}, time_{time} {}
  void open(std::string_view) override { ++in_->opened; }
  void write(std::span<const tap_record> records) override {
    for (const tap_record& one : records) {
      time_.advance(10);
      in_->keep(one);
    }
  }
  void flush() override { ++in_->flushed; }
  void close() override { ++in_->closed; }

 private:
  std::shared_ptr<kept_book> in_;
  test::virtual_time& time_;
};

TEST_P(queued_sinks, T09_have_every_record_when_a_flush_returns_however_slow_they_are) {
  for (const bool thread : {false, true}) {
    tapped_model model{2, 4};
    monitor_options how = small();
    how.thread = thread;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    const auto slow = std::make_shared<kept_book>();
    eye.send_to(std::make_unique<slow_sink>(slow, time), queue("slow"));
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    expected.clear();
    steps = 0;
    for (int i = 0; i < 25; ++i) run(cache, eye, model, 1, "*");
    eye.flush();
    expect_all(*slow);  // 100, each once
    EXPECT_EQ(slow->flushed, 1);
    run(cache, eye, model, 1, "*");
    eye.await_request(no_request);
    expect_all(*slow);
    eye.stop();
    eye.stop();
    EXPECT_EQ(slow->closed, 1);
    EXPECT_EQ(eye.counts().sink_delivered, 104U);
  }
}

TEST_P(queued_sinks, T08_that_refuse_one_record_lose_that_one_and_say_so_as_they_were_told) {
  for (const when_lost told : {when_lost::count, when_lost::raise}) {
    tapped_model model{1, 4};
    monitor eye{on.opened, small()};
    eye.watch({"resid_pre", row_mode::all()});
    const auto failing = std::make_shared<kept_book>();
    const auto sound = std::make_shared<kept_book>();
    failing->refuses = [](const tap_record& one) { return one.step == 4; };
    eye.send_to(std::make_unique<keeping_sink>(failing), queue("failing", told));
    eye.send_to(std::make_unique<keeping_sink>(sound), queue("sound", told));
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    expected.clear();
    steps = 0;
    int thrown = 0;
    for (int i = 0; i < 100; ++i) {
      run(cache, eye, model, 2, "resid_pre");
      if (i % 10 != 9) continue;
      try {
        eye.flush();
      } catch (const sink_error& lost) {
        ++thrown;
        EXPECT_TRUE(test::has(lost.what(), "the disk is full")) << lost.what();
      }
    }
    EXPECT_EQ(thrown, told == when_lost::raise ? 1 : 0);
    expect_all(*sound);
    expected.erase(expected.begin() + 4);
    expect_all(*failing);
    const tap_counts counts = eye.counts();
    EXPECT_EQ(counts.sink_lost, 1U);
    EXPECT_EQ(counts.sink_published, 200U);
    EXPECT_EQ(counts.sink_delivered + counts.sink_lost, counts.sink_published);
    const std::string text = eye.metrics();
    EXPECT_TRUE(test::has(text, "\nreprise_tap_sink_lost_total 1\n")) << text;
    EXPECT_TRUE(test::has(text, "\nreprise_tap_records_total 100\n"));
    EXPECT_TRUE(test::has(text, "\nreprise_sink_records_lost_total{sink=\"failing\"} 1\n"));
    EXPECT_TRUE(test::has(text, "\nreprise_sink_queue_records{sink=\"sound\"} 0\n"));
    const std::string line = test::message_of<sink_error>([&] { eye.stop(); });
    EXPECT_EQ(line, "sink \"failing\" lost 1 of 100 records (resid_pre:0 1): the disk is full");
    EXPECT_EQ(failing->closed + sound->closed, 2);
    eye.stop();
  }
}

TEST_P(queued_sinks, T08_a_function_that_throws_costs_that_record_and_is_told_of_once) {
  tapped_model model{1, 4};
  monitor eye{on.opened, small()};
  eye.watch({"resid_pre", row_mode::all()});
  const auto failing = std::make_shared<kept_book>();
  failing->refuses = [](const tap_record& one) { return one.step == 2; };
  send_to(eye, failing);
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int i = 0; i < 6; ++i) run(cache, eye, model, 2, "resid_pre");
  EXPECT_TRUE(test::has(test::message_of<sink_error>([&] { eye.flush(); }), "the disk is full"));
  eye.flush();
  expect_all();
  EXPECT_EQ(failing->records.size(), 5U);
  const tap_counts counts = eye.counts();
  EXPECT_EQ(counts.sink_lost, 1U);
  EXPECT_EQ(counts.sink_published, 12U);
  EXPECT_EQ(counts.sink_delivered, 11U);
  EXPECT_EQ(test::message_of<sink_error>([&] { eye.stop(); }),
            "taps lost 1 of 12 records on their way: the disk is full");
}

TEST_P(queued_sinks, of_one_name_are_told_apart_and_one_that_cannot_open_is_not_there) {
  class closed_sink final : public record_sink {
   public:
    void open(std::string_view run) override { throw usage_error{std::string{run} + ": no"}; }
    void write(std::span<const tap_record>) override {}
    void flush() override {}
    void close() override {}
  };
  monitor_options how = small();
  how.run_name = "a run";
  monitor eye{on.opened, how};
  eye.send_to(std::make_unique<keeping_sink>(book));
  eye.send_to(std::make_unique<keeping_sink>(book));
  EXPECT_EQ(test::message_of<usage_error>([&] { eye.send_to(std::make_unique<closed_sink>()); }),
            "a run: no");
  EXPECT_EQ(test::message_of<usage_error>([&] { eye.deliver_to({}); }),
            "deliver_to without a function; give one");
  std::string names;
  for (const named_sink_counts& sink : eye.sink_counts()) names += sink.name + ";";
  EXPECT_EQ(names, "sink;sink 2;");
}

// Does not write before it is let go.
class held_sink final : public record_sink {
 public:
  held_sink(std::shared_ptr<kept_book> in, std::latch& go_on) : in_{in}, go_on_{go_on} {}
  void open(std::string_view) override {}
  void write(std::span<const tap_record> records) override {
    go_on_.wait();
    for (const tap_record& one : records) in_->keep(one);
  }
  void flush() override {}
  void close() override {}

 private:
  std::shared_ptr<kept_book> in_;
  std::latch& go_on_;
};

class held_sinks : public queued_sinks {
 protected:
  static constexpr std::uint64_t all = 100;

  void SetUp() override {
    if (owns_time()) GTEST_SKIP() << "its host threads wait for no sink";
  }
  static monitor_options few(bool drop) {
    monitor_options how = small();
    how.flights = 4;
    how.thread = true;
    how.drop_when_full = drop;
    how.wait_limit_ms = 60'000;
    return how;
  }
  sink_queue_options narrow(when_full full) {
    sink_queue_options how;
    how.most_records = 2;
    how.age_limit_us = 0;
    how.wait_limit_us = 60'000'000;
    how.full = full;
    how.loss = when_lost::count;
    return how;
  }
  void run_all(monitor& eye) {
    eye.watch({"resid_pre", row_mode::all()});
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    for (std::uint64_t i = 0; i < all; ++i) run(cache, eye, model, 2, "resid_pre");
  }

  tapped_model model{1, 4};
  std::latch go_on{1};
};
MONITORED_ON_ALL_DEVICES(held_sinks);

TEST_P(held_sinks, make_a_plan_drop_where_dropping_was_chosen_and_hold_no_step) {
  monitor eye{on.opened, few(true)};
  eye.send_to(std::make_unique<held_sink>(book, go_on), narrow(when_full::wait));
  run_all(eye);  // returns, though the sink has taken nothing
  EXPECT_GT(eye.counts().dropped, 0U);
  go_on.count_down();
  eye.flush();
  const tap_counts counts = eye.counts();
  expect_sums(counts);
  EXPECT_EQ(counts.published + counts.dropped, all);
  EXPECT_EQ(counts.lost + counts.sink_lost, 0U);
  EXPECT_EQ(book->records.size(), counts.published);
}

TEST_P(held_sinks, make_a_plan_wait_where_waiting_was_chosen_and_lose_nothing) {
  monitor eye{on.opened, few(false)};
  eye.send_to(std::make_unique<held_sink>(book, go_on), narrow(when_full::wait));
  std::thread letting_go{[&] {
    const auto waits = [&] { return eye.sink_counts()[0].counts.waits; };
    while (waits() == 0 || eye.counts().reserve_waits == 0) std::this_thread::yield();
    go_on.count_down();
  }};
  run_all(eye);
  letting_go.join();
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().dropped, 0U);
  EXPECT_EQ(eye.sink_counts()[0].counts.delivered, all);
}

TEST_P(held_sinks, whose_queue_drops_lose_alone_and_fill_no_ring) {
  monitor eye{on.opened, few(false)};
  const auto held = std::make_shared<kept_book>();
  eye.send_to(std::make_unique<held_sink>(held, go_on), narrow(when_full::drop));
  send_here(eye);
  run_all(eye);
  while (eye.counts().records != all) std::this_thread::yield();
  go_on.count_down();
  eye.flush();
  expect_all();
  const sink_counts counts = eye.sink_counts()[0].counts;
  EXPECT_GT(counts.dropped, 0U);
  EXPECT_EQ(counts.lost, counts.dropped);
  EXPECT_EQ(counts.delivered + counts.lost, all);
  EXPECT_EQ(held->records.size(), counts.delivered);
  EXPECT_TRUE(test::has(test::message_of<sink_error>([&] { eye.stop(); }), "the queue was full"));
}

}  // namespace
}  // namespace reprise
