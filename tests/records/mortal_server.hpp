// A ClickHouse server that is killed at every n-th insert, each time in another way, and started
// again: what stands between a sink and its server in the tests of kills.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "reprise/records/clickhouse/http_call.hpp"
#include "tests/records/clickhouse_process.hpp"

namespace reprise::test {

inline bool is_insert(const http_request& request) {
  return request.query.starts_with("INSERT INTO reprise_records");
}

class mortal_server {
 public:
  mortal_server(clickhouse_process& server, int every)
      : server_{server}, real_{http_to(server.address())}, every_{every} {}

  http_answer answer_to(const http_request& request) {
    if (!server_.is_running()) {
      // It is away for one call, and back for the next.
      if (!std::exchange(refused_once_, true)) return real_(request);
      refused_once_ = false;
      server_.start();
    }
    if (!is_insert(request) || ++inserts_ % every_ != 1) return real_(request);
    switch (kills_++ % 3) {
      case 0:  // before it hears of the batch
        server_.kill();
        return real_(request);
      case 1: {  // once it has it, before the answer is read
        const http_answer answer = real_(request);
        EXPECT_EQ(answer.status, 200) << answer.body;
        server_.kill();
        throw connection_broken{"the connection broke before the answer came"};
      }
      default: return killed_at_work(request);
    }
  }
  int kills() const { return kills_; }
  int inserts() const { return inserts_; }

 private:
  // Killed while it works on the insert, wherever that is; or behind it, where it was too quick.
  http_answer killed_at_work(const http_request& request) {
    std::atomic<bool> answered = false;
    std::thread killer{[&] {
      const std::string running =
          "SELECT count() FROM system.processes WHERE query_id = '" + request.query_id + "'";
      while (!answered && server_.ask(running) == "0\n") std::this_thread::yield();
      server_.kill();
    }};
    const auto end = [&] {
      answered = true;
      killer.join();
    };
    try {
      const http_answer answer = real_(request);
      end();
      return answer;
    } catch (...) {
      end();
      throw;
    }
  }

  clickhouse_process& server_;
  http_call real_;
  int every_;
  int inserts_ = 0;
  int kills_ = 0;
  bool refused_once_ = false;
};

}  // namespace reprise::test
