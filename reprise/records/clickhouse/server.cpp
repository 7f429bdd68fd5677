#include "reprise/records/clickhouse/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/records/clickhouse/row_binary.hpp"
#include "reprise/records/schema.hpp"

namespace reprise::records {

namespace {

constexpr int unknown_database = 81;

std::vector<std::string> lines_in(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// "Code: 193, e.displayText() = DB::Exception: Wrong password for user x, e.what() = ..." and what
// newer servers write: 193, and the sentence.
int code_in(std::string_view body) {
  constexpr std::string_view before = "Code: ";
  const std::size_t at = body.find(before);
  int code = 0;
  if (at != std::string_view::npos) {
    std::from_chars(body.data() + at + before.size(), body.data() + body.size(), code);
  }
  return code;
}

std::string sentence_in(std::string_view body) {
  constexpr std::string_view before = "DB::Exception: ";
  constexpr std::size_t longest = 240;
  if (const std::size_t at = body.find(before); at != std::string_view::npos) {
    body.remove_prefix(at + before.size());
  }
  body = body.substr(0, body.find(", e.what()"));
  body = body.substr(0, body.find('\n'));
  return formats::printable(body.substr(0, longest));
}

// "name String, …" for a CREATE TABLE, or "name, …" for an INSERT.
std::string columns_text(bool types) {
  std::string text;
  const auto add = [&](std::string_view name, std::string_view type) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", name, types ? " " : "",
                        types ? type : "");
  };
  for (const table_column& column : block_columns) add(column.name, column.type);
  for (const record_column& column : record_columns) add(column.name, column.clickhouse);
  return text;
}

}  // namespace

bool server_refusal::not_let_in() const noexcept {
  // UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, and what newer servers say for all of them.
  constexpr int codes[] = {192, 193, 194, 516};
  return status_ == 401 || status_ == 403 || std::ranges::find(codes, code_) != std::end(codes);
}

std::vector<std::string> clickhouse_server::ask(const std::string& query,
                                                const std::string& query_id,
                                                std::string body) const {
  const http_answer answer = call_({.query_id = query_id, .query = query, .body = std::move(body)});
  if (answer.status == 200) return lines_in(answer.body);
  throw server_refusal{answer.status, code_in(answer.body),
                       fmt::format("{}: the server refuses ({})", at_.text(),
                                   answer.body.empty() ? fmt::format("status {}", answer.status)
                                                       : sentence_in(answer.body))};
}

std::uint64_t clickhouse_server::ask_number(const std::string& query) const {
  const std::vector<std::string> lines = ask(query);
  std::uint64_t number = 0;
  const bool read =
      lines.size() == 1 &&
      std::from_chars(lines[0].data(), lines[0].data() + lines[0].size(), number).ptr ==
          lines[0].data() + lines[0].size();
  if (!read) {
    throw server_refusal{200, 0, fmt::format("{}: it answers a count with no number", at_.text())};
  }
  return number;
}

void clickhouse_server::open() const {
  try {
    make_tables();
  } catch (const connection_broken& away) {
    throw usage_error{away.what()};
  } catch (const server_refusal& no) {
    if (no.not_let_in()) {
      throw usage_error{
          fmt::format("{}, check user and password in "
                      "clickhouse://USER:PASSWORD@HOST:PORT/DATABASE",
                      no.what())};
    }
    throw usage_error{
        fmt::format("{}, {}", no.what(),
                    no.code() == unknown_database ? "create the database first" : "check its log")};
  }
}

void clickhouse_server::make_tables() const {
  ask(
      fmt::format("CREATE TABLE IF NOT EXISTS {} (name String, version UInt32) "
                  "ENGINE = MergeTree ORDER BY name",
                  schema_table));
  const std::string versions =
      fmt::format("SELECT DISTINCT version FROM {} WHERE name = {} ORDER BY version", schema_table,
                  sql_text(records_table));
  const std::string ours = std::to_string(record_schema_version);
  if (ask(versions).empty()) {
    ask(fmt::format("INSERT INTO {} (name, version) VALUES ({}, {})", schema_table,
                    sql_text(records_table), ours));
  }
  const std::vector<std::string> found = ask(versions);
  if (found != std::vector{ours} && !REPRISE_MUTANT(other_schema_is_written_to)) {
    throw usage_error{
        fmt::format("{}: its records are of schema {} and this writes schema {}, use "
                    "another database or the version of reprise that made the table",
                    at_.text(), found.empty() ? "unknown" : found.back(), ours)};
  }
  ask(
      fmt::format("CREATE TABLE IF NOT EXISTS {} ({}) ENGINE = MergeTree "
                  "ORDER BY (run_name, kind, layer, shard, request, step)",
                  records_table, columns_text(true)));
  std::string columns;
  for (const std::string& line :
       ask(fmt::format("SELECT concat(name, ' ', type) FROM system.columns "
                       "WHERE database = currentDatabase() AND table = {}",
                       sql_text(records_table)))) {
    columns += (columns.empty() ? "" : ", ") + line;
  }
  if (columns != columns_text(true)) {
    throw usage_error{
        fmt::format("{}: a table {} is there with other columns, use another database", at_.text(),
                    records_table)};
  }
}

std::string sql_text(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '\'';
}

}  // namespace reprise::records
