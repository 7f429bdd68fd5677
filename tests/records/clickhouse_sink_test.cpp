// The ClickHouse sink against a server that breaks connections at every point that matters.
#include "reprise/records/clickhouse/clickhouse_sink.hpp"

#include <gtest/gtest.h>

#include <set>

#include "reprise/records/sink_queue.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/records/fake_clickhouse.hpp"
#include "tests/records/virtual_time.hpp"

namespace reprise::test {
namespace {

class clickhouse_sink_test : public testing::Test {
 protected:
  std::unique_ptr<record_sink> made() {
    return clickhouse_sink({.host = "fake", .port = 1, .database = "db"},
                           {.call = server.call(),
                            .writer = "w",
                            .pause = [&](std::int64_t us) { paused_us += us; },
                            .look_again_us = 5,
                            .most_looks = 20});
  }
  std::string open_refusal() {
    return line_of<usage_error>([&] { made()->open("run1"); });
  }

  fake_clickhouse server;
  std::int64_t paused_us = 0;
};

TEST_F(clickhouse_sink_test, sends_one_block_for_each_batch_under_an_id_of_its_own) {
  const auto sink = made();
  sink->open("run1");
  sink->write(views(records_numbered(0, 5)));
  sink->write(views(records_numbered(5, 3)));
  sink->close();
  EXPECT_EQ(server.query_ids, (std::vector<std::string>{"w-1", "w-2"}));
  EXPECT_EQ(server.records(), records_numbered(0, 8));
  EXPECT_EQ(server.rows[6].batch, "w-2");
  EXPECT_EQ(server.rows[6].in_batch, 1U);
  EXPECT_EQ(server.rows[6].run_name, "run1");
  EXPECT_EQ(server.versions, std::vector<std::string>{"1"});
}

// Every way in which an insert can end, and what the second attempt then has to do.
struct broken_case {
  const char* name;
  insert_fate fate;
};

TEST_F(clickhouse_sink_test, after_a_broken_connection_nothing_is_lost_and_nothing_doubled) {
  for (const broken_case& broken :
       {broken_case{"before anything arrived", {.rows = 0, .breaks = true}},
        broken_case{"after all arrived", {.breaks = true}},
        broken_case{"after the first rows arrived", {.rows = 3, .breaks = true}},
        broken_case{"while the insert runs", {.breaks = true, .still_running = 7}},
        broken_case{"while an insert runs that fails",
                    {.rows = 0, .breaks = true, .still_running = 2}},
        broken_case{"by something in between",
                    {.answer = http_answer{502, "<html>Bad gateway</html>"}}}}) {
    server = {};
    server.fates.push_back(broken.fate);
    const auto sink = made();
    sink->open("run1");
    const std::vector<owned_record> batch = records_numbered(0, 10);
    try {
      sink->write(views(batch));
      ADD_FAILURE() << broken.name << ": the batch is taken";
    } catch (const sink_error& away) {
      EXPECT_EQ(away.trouble(), sink_trouble::away) << broken.name;
      EXPECT_EQ(away.taken(), 0U) << broken.name;
    }
    sink->write(views(batch));
    sink->write(views(records_numbered(10, 2)));
    EXPECT_EQ(server.records(), records_numbered(0, 12)) << broken.name;
    EXPECT_EQ(paused_us, 5 * broken.fate.still_running) << broken.name;
    paused_us = 0;
    const std::set<std::string> ids{server.query_ids.begin(), server.query_ids.end()};
    EXPECT_EQ(ids.size(), server.query_ids.size()) << "an id is used once";
  }
}

TEST_F(clickhouse_sink_test, a_connection_that_breaks_again_and_again_loses_nothing) {
  server.fates = {{.rows = 2, .breaks = true},
                  {.rows = 3, .breaks = true},
                  {.rows = 0, .breaks = true},
                  {.breaks = true, .still_running = 2}};
  virtual_time time{true};
  sink_queue_options options{.name = "ch", .attempts = 3};
  options.clock = time.clock();
  sink_queue queue{made(), "run1", options};
  queue.publish(views(records_numbered(0, 10)));
  queue.flush();
  EXPECT_EQ(server.records(), records_numbered(0, 10));
  EXPECT_EQ(queue.counts().delivered, 10U);
  EXPECT_EQ(queue.counts().lost, 0U);
  queue.close();
}

TEST_F(clickhouse_sink_test, a_server_that_comes_back_late_is_asked_first) {
  const auto sink = made();
  sink->open("run1");
  server.fates = {{.breaks = true}};
  const std::vector<owned_record> batch = records_numbered(0, 4);
  line_of<sink_error>([&] { sink->write(views(batch)); });
  server.away = true;
  for (int i = 0; i < 3; ++i) line_of<sink_error>([&] { sink->write(views(batch)); });
  EXPECT_EQ(server.query_ids.size(), 1U) << "nothing is sent before it is known what arrived";
  server.away = false;
  sink->write(views(batch));
  EXPECT_EQ(server.records(), batch);
}

TEST_F(clickhouse_sink_test, says_when_records_that_were_given_up_are_there_after_all) {
  std::vector<std::string> lines;
  const log_sink before = set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  const auto sink = made();
  sink->open("run1");
  server.fates = {{.breaks = true}};
  line_of<sink_error>([&] { sink->write(views(records_numbered(0, 4))); });
  server.fates = {{}, {.rows = 2, .breaks = true}};
  sink->write(views(records_numbered(4, 1)));
  line_of<sink_error>([&] { sink->write(views(records_numbered(5, 3))); });
  sink->close();
  set_log_sink(before);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "clickhouse://fake:1/db: 4 records arrived that were counted as lost",
                       "clickhouse://fake:1/db: 2 records arrived that were counted as lost"}));
  EXPECT_EQ(server.records(), records_numbered(0, 7));
}

TEST_F(clickhouse_sink_test, waits_for_a_running_insert_no_longer_than_was_said) {
  const auto sink = made();
  sink->open("run1");
  server.fates = {{.breaks = true, .still_running = 1'000}};
  const std::vector<owned_record> batch = records_numbered(0, 4);
  line_of<sink_error>([&] { sink->write(views(batch)); });
  EXPECT_TRUE(has(line_of<sink_error>([&] { sink->write(views(batch)); }), "still running"));
  EXPECT_EQ(paused_us, 5 * 20);
  EXPECT_EQ(server.query_ids.size(), 1U);
}

TEST_F(clickhouse_sink_test, what_the_server_refuses_is_trouble_with_the_records) {
  const auto sink = made();
  sink->open("run1");
  server.fates = {{.rows = 0,
                   .answer = http_answer{500,
                                         "Code: 241, e.displayText() = DB::Exception: Memory "
                                         "limit (for query) exceeded, e.what() = x\n0. stack"}}};
  try {
    sink->write(views(records_numbered(0, 4)));
    ADD_FAILURE();
  } catch (const sink_error& refused) {
    EXPECT_EQ(refused.trouble(), sink_trouble::records);
    EXPECT_STREQ(refused.what(),
                 "clickhouse://fake:1/db: the server refuses (Memory limit (for query) exceeded)");
  }
  sink->write(views(records_numbered(0, 4)));
  EXPECT_EQ(server.records(), records_numbered(0, 4));
}

TEST_F(clickhouse_sink_test, that_is_not_let_in_any_more_is_done_for_good) {
  const auto sink = made();
  sink->open("run1");
  server.fates = {
      {.rows = 0, .answer = http_answer{401, "Code: 193, DB::Exception: Wrong password"}}};
  try {
    sink->write(views(records_numbered(0, 4)));
    ADD_FAILURE();
  } catch (const sink_error& refused) {
    EXPECT_EQ(refused.trouble(), sink_trouble::for_good);
  }
}

TEST_F(clickhouse_sink_test, writes_to_no_table_of_another_schema) {
  server.versions = {"2"};
  const std::string line = open_refusal();
  EXPECT_TRUE(has(line, "schema 2 and this writes schema 1")) << line;
  server.versions = {"1", "2"};
  open_refusal();
  server.versions = {"1"};
  server.columns.replace(server.columns.find("UInt64"), 6, "UInt32");
  EXPECT_TRUE(has(open_refusal(), "other columns"));
}

TEST_F(clickhouse_sink_test, is_refused_in_one_line_where_nobody_answers) {
  server.away = true;
  EXPECT_TRUE(has(open_refusal(), "nobody answers there"));
}

}  // namespace
}  // namespace reprise::test
