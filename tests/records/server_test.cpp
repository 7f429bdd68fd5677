// The ClickHouse sink and a real server: what is in the table is what was sent, whatever breaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "reprise/records/clickhouse/clickhouse_sink.hpp"
#include "reprise/records/clickhouse/framed_body.hpp"
#include "reprise/records/clickhouse/row_binary.hpp"
#include "reprise/records/sink_queue.hpp"
#include "tests/records/mortal_server.hpp"
#include "tests/records/row_decoder.hpp"
#include "tests/records/virtual_time.hpp"

namespace reprise::test {
namespace {

class server_test : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (has_http() && clickhouse_process::is_installed()) {
      server = std::make_unique<clickhouse_process>();
    }
  }
  static void TearDownTestSuite() { server.reset(); }

  void SetUp() override {
    if (!has_http()) GTEST_SKIP() << "this build has no cpp-httplib: install libcpp-httplib-dev";
    if (server == nullptr) GTEST_SKIP() << "there is no clickhouse-server: install Debian's";
    if (!server->is_running()) server->start();
    server->ask("DROP TABLE IF EXISTS reprise_records");
    server->ask("DROP TABLE IF EXISTS reprise_schema");
  }

  static std::vector<table_row> table(const std::string& where = "1") {
    const std::string rows = server->ask(
        "SELECT run_name, batch, in_batch, run, step, replay, kind, layer, shard, shards, "
        "shard_axis, content, request, first_row, rows, place, dtype, shape, bytes "
        "FROM reprise_records WHERE " +
        where + " FORMAT RowBinary");
    std::vector<table_row> all = row_decoder{rows}.all();
    std::ranges::sort(all, {}, [](const table_row& row) { return row.record.replay; });
    return all;
  }
  static std::vector<owned_record> records_in_table(const std::string& where = "1") {
    std::vector<owned_record> all;
    for (const table_row& row : table(where)) all.push_back(row.record);
    return all;
  }
  // Each of the records once and nothing else, looked at slice by slice.
  static void expect_each_once(std::uint64_t all) {
    EXPECT_EQ(server->ask("SELECT count() FROM reprise_records"), std::to_string(all) + '\n');
    constexpr std::uint64_t slice = 100'000;
    for (std::uint64_t n = 0; n < all; n += slice) {
      const std::uint64_t count = std::min(slice, all - n);
      const std::string where =  // the replay of record n is n + 1
          "replay > " + std::to_string(n) + " AND replay <= " + std::to_string(n + count);
      ASSERT_TRUE(records_in_table(where) == records_numbered(n, count)) << where;
    }
  }

  // One line that the sink of `address` is refused with.
  static std::string refusal_of(const clickhouse_address& address) {
    return line_of<usage_error>([&] { clickhouse_sink(address)->open("run1"); });
  }

  // A queue whose pauses cost no time, before a sink whose calls go through `call`.
  std::unique_ptr<sink_queue> queue_through(http_call call) {
    sink_queue_options options{.name = "ch", .batch_records = 500, .attempts = 8};
    options.clock = time.clock();
    return queue_through(std::move(call), options);
  }
  std::unique_ptr<sink_queue> queue_through(http_call call, const sink_queue_options& options) {
    return std::make_unique<sink_queue>(
        clickhouse_sink(server->address(), {.call = std::move(call), .look_again_us = 1'000}),
        "run1", options);
  }

  static inline std::unique_ptr<clickhouse_process> server;
  virtual_time time{true};
};

TEST_F(server_test, has_every_record_as_it_was_sent) {
  sink_queue queue{clickhouse_sink(server->address()), "run1"};
  for (std::uint64_t n = 0; n < 1'000; n += 10) queue.publish(views(records_numbered(n, 10)));
  queue.close();
  EXPECT_EQ(records_in_table(), records_numbered(0, 1'000));
  EXPECT_EQ(table()[0].run_name, "run1");
  EXPECT_EQ(server->ask("SELECT name, version FROM reprise_schema FORMAT TabSeparated"),
            "reprise_records\t1\n");
}

TEST_F(server_test, takes_several_runs_and_writers_into_one_table) {
  for (const char* run : {"a", "it's \\ b"}) {
    sink_queue queue{clickhouse_sink(server->address()), run};
    queue.publish(views(records_numbered(0, 5)));
    queue.close();
  }
  std::set<std::string> runs;
  std::set<std::string> batches;
  for (const table_row& row : table()) {
    runs.insert(row.run_name);
    batches.insert(row.batch);
  }
  EXPECT_EQ(runs, (std::set<std::string>{"a", "it's \\ b"}));
  EXPECT_EQ(batches.size(), 2U);
}

TEST_F(server_test, answers_the_query_of_the_documentation) {
  sink_queue queue{clickhouse_sink(server->address()), "run1"};
  const std::vector<owned_record> all = records_numbered(0, 40);
  queue.publish(views(all));
  queue.close();
  std::ostringstream text;
  text << std::ifstream{std::filesystem::path{REPRISE_SOURCE_DIR} / "docs/records.md"}.rdbuf();
  const std::string page = text.str();
  const std::size_t begin = page.find("```sql\n") + 7;
  const std::string query = page.substr(begin, page.find("\n```", begin) - begin);
  std::string expected;
  for (const int layer : {0, 1}) {
    std::int64_t records = 0;
    std::int64_t rows = 0;
    for (const owned_record& one : all) {
      if (one.kind != "resid_pre" || one.layer != layer) continue;
      ++records;
      rows += one.rows;
    }
    expected +=
        std::to_string(layer) + '\t' + std::to_string(records) + '\t' + std::to_string(rows) + '\n';
  }
  EXPECT_EQ(server->ask(query + " ORDER BY layer"), expected) << query;
}

TEST_F(server_test, is_refused_in_one_clear_line) {
  clickhouse_address wrong = server->address();
  wrong.port = free_port();
  EXPECT_TRUE(has(refusal_of(wrong), "nobody answers there, start the server"));

  wrong = server->address();
  wrong.user = "scribe";
  wrong.password = "wr0ng";
  const std::string line = refusal_of(wrong);
  EXPECT_TRUE(has(line, "Wrong password")) << line;
  EXPECT_TRUE(has(line, "check user and password")) << line;
  EXPECT_FALSE(has(line, "wr0ng")) << line;
  wrong.password = "right";
  clickhouse_sink(wrong)->open("run1");

  wrong = server->address();
  wrong.database = "nowhere";
  EXPECT_TRUE(has(refusal_of(wrong), "create the database first"));

  server->ask("INSERT INTO reprise_schema (name, version) VALUES ('reprise_records', 7)");
  EXPECT_TRUE(has(refusal_of(server->address()), "schema 7 and this writes schema 1"));
}

TEST_F(server_test, refuses_a_table_of_that_name_with_other_columns) {
  server->ask("CREATE TABLE reprise_records (a UInt8) ENGINE = MergeTree ORDER BY a");
  EXPECT_TRUE(has(refusal_of(server->address()), "other columns"));
}

// Sends an insert by hand, so that it can end anywhere: `keep` bytes of its body, and then the end
// of the connection. Returns once the server has done with it.
void send_and_break(const clickhouse_process& to, const http_request& request, std::size_t keep) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(to.address().port));
  ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  std::string query;
  for (const char c : request.query) query += c == ' ' ? "%20" : std::string{c};
  const std::string body = records::framed_body(request.body);
  const std::string text = "POST /?query_id=" + request.query_id + "&query=" + query +
                           " HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n"
                           "Content-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body.substr(0, keep);
  for (std::size_t sent = 0; sent < text.size();) {
    const ::ssize_t more = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    ASSERT_GT(more, 0);
    sent += static_cast<std::size_t>(more);
  }
  ::shutdown(socket, SHUT_WR);
  char answer[4096];
  while (::recv(socket, answer, sizeof answer, 0) > 0) {
  }
  ::close(socket);
}

TEST_F(server_test, takes_no_row_of_a_batch_that_was_cut_off_on_its_way) {
  const std::vector<owned_record> batch = records_numbered(0, 500);
  const std::vector<tap_record> all = views(batch);
  const auto bytes_of = [&](std::size_t rows, const std::string& id) {
    return records::rows_of(std::span{all}.first(rows), "run1", id).size();
  };
  // Nothing, a part of a row, rows to the byte (behind what the frame begins with), all but a byte,
  // all.
  constexpr std::size_t frame_begins = 10 + 5;
  for (const std::size_t part : {0U, 1U, 2U, 3U, 4U}) {
    server->ask("DROP TABLE IF EXISTS reprise_records");
    bool broken = false;
    std::string arrived;
    const http_call real = http_to(server->address());
    const auto queue = queue_through([&](const http_request& request) {
      if (!is_insert(request) || std::exchange(broken, true)) return real(request);
      const std::size_t whole = records::framed_body(request.body).size();
      const std::size_t keeps[] = {0, frame_begins + bytes_of(1, request.query_id) - 3,
                                   frame_begins + bytes_of(200, request.query_id), whole - 1,
                                   whole};
      send_and_break(*server, request, keeps[part]);
      arrived = server->ask("SELECT count() FROM reprise_records");
      throw connection_broken{"the connection broke while records were sent"};
    });
    queue->publish(views(batch));
    queue->flush();
    EXPECT_TRUE(broken);
    EXPECT_EQ(arrived, part == 4 ? "500\n" : "0\n") << "part " << part;
    EXPECT_EQ(queue->counts().retries, 1U);
    EXPECT_EQ(records_in_table(), batch) << "part " << part;
    queue->close();
  }
}

// REPRISE_RECORDS=10000000 is the long form: some minutes and 2 GB of disk, with ten kills and
// more, and the clock of the machine, since the queue is full again and again.
TEST_F(server_test, that_is_killed_again_and_again_has_every_row_once) {
  const std::uint64_t all = records_to_send(6'000);
  sink_queue_options options{.name = "ch", .batch_records = 500, .attempts = 8};
  if (is_long_form()) {
    options.batch_records = 10'000;
    options.wait_limit_us = 300'000'000;
  } else {
    options.clock = time.clock();
  }
  const std::uint64_t batches = all / options.batch_records;
  mortal_server mortal{*server, is_long_form() ? std::max(static_cast<int>(batches / 10), 2) : 2};
  const auto queue = queue_through(
      [&](const http_request& request) { return mortal.answer_to(request); }, options);
  for (std::uint64_t n = 0; n < all; n += 250) {
    queue->publish(views(records_numbered(n, std::min<std::uint64_t>(250, all - n))));
  }
  queue->flush();
  const sink_counts counts = queue->counts();
  EXPECT_GE(mortal.kills(), is_long_form() ? 10 : 6);
  EXPECT_EQ(counts.delivered, all);
  EXPECT_EQ(counts.lost, 0U);
  queue->close();
  if (!server->is_running()) server->start();
  expect_each_once(all);
  if (!is_long_form()) return;
  std::printf("%llu records, each once, after %d inserts, %d kills and %llu retries\n",
              static_cast<unsigned long long>(all), mortal.inserts(), mortal.kills(),
              static_cast<unsigned long long>(counts.retries));
}

}  // namespace
}  // namespace reprise::test
