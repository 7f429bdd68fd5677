// Where records go, as a person types it.
#include "reprise/records/sink_address.hpp"

#include <gtest/gtest.h>

#include "tests/records/support.hpp"

namespace reprise::test {
namespace {

TEST(sink_address_test, is_a_folder_a_database_or_a_count) {
  EXPECT_EQ(std::get<run_folder_address>(parse_sink_address("out/run1")).folder, "out/run1");
  EXPECT_TRUE(std::holds_alternative<count_address>(parse_sink_address("count:")));
  const auto plain =
      std::get<clickhouse_address>(parse_sink_address("clickhouse://127.0.0.1:8123/taps"));
  EXPECT_EQ(plain.host, "127.0.0.1");
  EXPECT_EQ(plain.port, 8123);
  EXPECT_EQ(plain.database, "taps");
  EXPECT_EQ(plain.user, "default");
  EXPECT_EQ(plain.password, "");
}

TEST(sink_address_test, takes_a_user_and_a_password_and_shows_neither) {
  const auto made = std::get<clickhouse_address>(
      parse_sink_address("clickhouse://scribe:s%40fe:pw%2F@db-1.local:9000/taps"));
  EXPECT_EQ(made.user, "scribe");
  EXPECT_EQ(made.password, "s@fe:pw/");
  EXPECT_EQ(made.text(), "clickhouse://db-1.local:9000/taps");
}

TEST(sink_address_test, that_is_wrong_is_refused_in_one_line_without_its_password) {
  for (const char* wrong :
       {"", "count:3", "http://127.0.0.1:8123/taps", "clickhouse://", "clickhouse://host/taps",
        "clickhouse://a:secret@host:8123", "clickhouse://a:secret@host:8123/",
        "clickhouse://a:secret@host:0/taps", "clickhouse://a:secret@host:65536/taps",
        "clickhouse://a:secret@host:80x/taps", "clickhouse://:secret@host:8123/taps",
        "clickhouse://a:secret%4@host:8123/taps", "clickhouse://a:secret%zz@host:8123/taps",
        "clickhouse://a:secret@ho st:8123/taps", "clickhouse://a:secret@host:8123/ta-ps",
        "clickhouse://a:secret@host:8123/taps/more", "postgres://a:secret@host:8123/taps"}) {
    const std::string line = line_of<usage_error>([&] { parse_sink_address(wrong); });
    EXPECT_FALSE(has(line, "secret")) << line;
    EXPECT_TRUE(has(line, "clickhouse://")) << line;
  }
}

}  // namespace
}  // namespace reprise::test
