// What a person types to say where records go, taken apart and checked before anything is opened.
//
//   run1, out/run1                             a run directory
//   clickhouse://[USER:PASSWORD@]HOST:PORT/DB  a database
//   count:                                     nowhere; counted
//
// Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

namespace reprise {

struct run_folder_address {
  std::filesystem::path folder;
};

struct clickhouse_address {
  std::string host;
  int port = 8123;
  std::string database;
  std::string user = "default";
  std::string password{};

  // Without user and password: for lines that people and logs see.
  std::string text() const;
};

struct count_address {};

using sink_address = std::variant<run_folder_address, clickhouse_address, count_address>;

// Throws usage_error, one line that never repeats a password. Percent signs in user and password
// begin two hexadecimal digits, as in any URL; a database is letters, digits and '_'.
sink_address parse_sink_address(std::string_view where);

}  // namespace reprise
