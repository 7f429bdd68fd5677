// A ClickHouse server as this room asks it: queries, and errors in one line. For this room's .cpp
// files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/records/clickhouse/http_call.hpp"
#include "reprise/records/sink_address.hpp"

namespace reprise::records {

inline constexpr std::string_view records_table = "reprise_records";
inline constexpr std::string_view schema_table = "reprise_schema";

// What the server said no to.
class server_refusal : public error {
 public:
  server_refusal(int status, int code, const std::string& line)
      : error{line}, status_{status}, code_{code} {}

  int code() const noexcept { return code_; }  // ClickHouse's; 0: the answer is not ClickHouse's
  bool not_let_in() const noexcept;

 private:
  int status_;
  int code_;
};

class clickhouse_server {
 public:
  clickhouse_server(clickhouse_address at, http_call call)
      : at_{std::move(at)}, call_{std::move(call)} {}

  // The lines of what it answers. Throws connection_broken and server_refusal.
  std::vector<std::string> ask(const std::string& query, const std::string& query_id = "",
                               std::string body = "") const;
  std::uint64_t ask_number(const std::string& query) const;

  // Makes both tables where they are not there. Throws usage_error, one line, where the server
  // cannot be used: nobody answers, nobody is let in, no such database, another schema.
  void open() const;

  const clickhouse_address& at() const noexcept { return at_; }

 private:
  void make_tables() const;

  clickhouse_address at_;
  http_call call_;
};

// A text between single quotes, as SQL has it.
std::string sql_text(std::string_view text);

}  // namespace reprise::records
