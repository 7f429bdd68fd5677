// A ClickHouse server that lives in the test: it knows the queries that the sink makes, keeps the
// rows, and breaks connections where it is told to.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reprise/records/clickhouse/http_call.hpp"
#include "reprise/records/clickhouse/row_binary.hpp"
#include "reprise/records/schema.hpp"
#include "tests/records/row_decoder.hpp"

namespace reprise::test {

// What becomes of one insert of records.
struct insert_fate {
  std::optional<std::size_t> rows{};  // that arrive; left out: all
  bool breaks = false;                // no answer comes
  int still_running = 0;              // looks at system.processes that see it; it ends after them
  std::optional<http_answer> answer{};
};

class fake_clickhouse {
 public:
  http_call call() {
    return [this](const http_request& request) { return answer_to(request); };
  }

  std::deque<insert_fate> fates;  // of the next inserts; empty: all is well
  bool away = false;              // nobody answers anything
  std::vector<std::string> versions;
  std::string columns = own_columns();
  std::vector<table_row> rows;
  std::vector<std::string> queries;
  std::vector<std::string> query_ids;  // of inserts

  std::vector<owned_record> records() const {
    std::vector<owned_record> all;
    for (const table_row& row : rows) all.push_back(row.record);
    return all;
  }

 private:
  static std::string own_columns() {
    std::string text;
    for (const records::table_column& c : records::block_columns) {
      text += std::string{c.name} + ' ' + std::string{c.type} + '\n';
    }
    for (const record_column& c : record_columns) {
      text += std::string{c.name} + ' ' + std::string{c.clickhouse} + '\n';
    }
    return text;
  }

  http_answer answer_to(const http_request& request) {
    queries.push_back(request.query);
    if (away) throw connection_broken{"clickhouse://fake:1/db: nobody answers there"};
    const std::string_view query = request.query;
    if (query.starts_with("CREATE TABLE IF NOT EXISTS ")) return {200};
    if (query.starts_with("INSERT INTO reprise_schema")) {
      versions.emplace_back("1");
      return {200};
    }
    if (query.starts_with("SELECT DISTINCT version")) {
      std::string lines;
      for (const std::string& version : versions) lines += version + '\n';
      return {200, lines};
    }
    if (has(query, "FROM system.columns")) return {200, columns};
    if (query.starts_with("INSERT INTO reprise_records")) return insert(request);
    if (has(query, "FROM system.processes")) return running();
    if (query.starts_with("SELECT count() FROM reprise_records")) {
      return {200, std::to_string(rows_of_batch(query).size()) + '\n'};
    }
    if (query.starts_with("SELECT max(in_batch)")) {
      return {200, std::to_string(rows_of_batch(query).back().in_batch) + '\n'};
    }
    ADD_FAILURE() << "a query that the server does not know: " << query;
    return {500};
  }

  http_answer insert(const http_request& request) {
    query_ids.push_back(request.query_id);
    insert_fate fate;
    if (!fates.empty()) {
      fate = fates.front();
      fates.pop_front();
    }
    std::vector<table_row> all = row_decoder{request.body}.all();
    all.resize(std::min(all.size(), fate.rows.value_or(all.size())));
    running_ = fate.still_running;
    if (running_ == 0) {
      rows.insert(rows.end(), all.begin(), all.end());
    } else {
      on_their_way_ = all;
    }
    if (fate.breaks) throw connection_broken{"clickhouse://fake:1/db: the connection broke"};
    return fate.answer.value_or(http_answer{200});
  }

  http_answer running() {
    if (running_ == 0) return {200, "0\n"};
    if (--running_ == 0) {
      rows.insert(rows.end(), on_their_way_.begin(), on_their_way_.end());
      on_their_way_.clear();
    }
    return {200, "1\n"};
  }

  std::vector<table_row> rows_of_batch(std::string_view query) const {
    std::vector<table_row> found;
    for (const table_row& row : rows) {
      if (has(query, "'" + row.batch + "'")) found.push_back(row);
    }
    return found;
  }

  int running_ = 0;
  std::vector<table_row> on_their_way_;
};

}  // namespace reprise::test
