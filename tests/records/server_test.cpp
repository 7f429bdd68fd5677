// The ClickHouse sink and a real server: what is in the table is what was sent, whatever breaks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "reprise/records/clickhouse/clickhouse_sink.hpp"
#include "reprise/records/clickhouse/framed_body.hpp"
#include "reprise/records/clickhouse/row_binary.hpp"
#include "reprise/records/sink_queue.hpp"
#include "tests/records/clickhouse_process.hpp"
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

  static std::vector<table_row> table() {
    const std::string rows = server->ask(
        "SELECT run_name, batch, in_batch, run, step, replay, kind, layer, shard, shards, "
        "shard_axis, content, request, first_row, rows, place, dtype, shape, bytes FROM "
        "reprise_records FORMAT RowBinary");
    std::vector<table_row> all = row_decoder{rows}.all();
    std::ranges::sort(all, {}, [](const table_row& row) { return row.record.replay; });
    return all;
  }
  static std::vector<owned_record> records_in_table() {
    std::vector<owned_record> all;
    for (const table_row& row : table()) all.push_back(row.record);
    return all;
  }

  // One line that the sink of `address` is refused with.
  static std::string refusal_of(const clickhouse_address& address) {
    return line_of<usage_error>([&] { clickhouse_sink(address)->open("run1"); });
  }

  // A queue whose pauses cost no time, before a sink whose calls go through `call`.
  std::unique_ptr<sink_queue> queue_through(http_call call) {
    sink_queue_options options{.name = "ch", .batch_records = 500, .attempts = 8};
    options.clock = time.clock();
    return std::make_unique<sink_queue>(
        clickhouse_sink(server->address(), {.call = std::move(call), .look_again_us = 1'000}),
        "run1", options);
  }

  static inline std::unique_ptr<clickhouse_process> server;
  virtual_time time{true};
};

bool is_insert(const http_request& request) {
  return request.query.starts_with("INSERT INTO reprise_records");
}

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

TEST_F(server_test, that_is_killed_again_and_again_has_every_row_once) {
  int inserts = 0;
  int kills = 0;
  bool refused_once = false;
  const http_call real = http_to(server->address());
  const auto call = [&](const http_request& request) -> http_answer {
    if (!server->is_running()) {
      // It is away for one call, and back for the next.
      if (!std::exchange(refused_once, true)) return real(request);
      refused_once = false;
      server->start();
    }
    if (!is_insert(request)) return real(request);
    switch (++inserts % 6) {
      case 1: {  // killed before it hears of the batch
        ++kills;
        server->kill();
        return real(request);
      }
      case 3: {  // killed once it has it, before the answer is read
        ++kills;
        const http_answer answer = real(request);
        EXPECT_EQ(answer.status, 200) << answer.body;
        server->kill();
        throw connection_broken{"the connection broke before the answer came"};
      }
      case 5: {  // killed while it works on it, wherever that is
        ++kills;
        std::atomic<bool> sending = false;
        std::thread killer{[&] {
          while (!sending) std::this_thread::yield();
          server->kill();
        }};
        sending = true;
        try {
          const http_answer answer = real(request);
          killer.join();
          return answer;
        } catch (...) {
          killer.join();
          throw;
        }
      }
      default: return real(request);
    }
  };
  const auto queue = queue_through(call);
  constexpr std::uint64_t all = 6'000;
  for (std::uint64_t n = 0; n < all; n += 250) queue->publish(views(records_numbered(n, 250)));
  queue->flush();
  EXPECT_GE(kills, 6);
  const sink_counts counts = queue->counts();
  EXPECT_EQ(counts.delivered, all);
  EXPECT_EQ(counts.lost, 0U);
  queue->close();
  if (!server->is_running()) server->start();
  const std::vector<owned_record> got = records_in_table();
  EXPECT_EQ(got.size(), all);
  EXPECT_TRUE(got == records_numbered(0, all));
}

}  // namespace
}  // namespace reprise::test
