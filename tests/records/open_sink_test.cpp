// Sinks by name: each address opens its own kind, and a build without a library says what it lacks.
#include "reprise/records/open_sink.hpp"

#include <gtest/gtest.h>

#include "reprise/records/arrow/arrow_sink.hpp"
#include "reprise/records/arrow/recorded_run.hpp"
#include "reprise/records/clickhouse/http_call.hpp"
#include "reprise/records/multiplexer.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/records/support.hpp"

namespace reprise::test {
namespace {

TEST(open_sink_test, counts_where_that_is_asked_for) {
  std::vector<std::string> lines;
  const log_sink before = set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  {
    sink_multiplexer out{"run1"};
    out.add(open_sink("count:"));
    out.publish(views(records_numbered(0, 1)));
    out.close();
  }
  set_log_sink(before);
  EXPECT_EQ(lines, std::vector<std::string>{"run \"run1\": 1 records, 1 rows, 16 bytes"});
}

TEST(open_sink_test, writes_a_run_directory_for_a_folder_or_says_how_to_get_arrow) {
  if (!has_arrow()) {
    EXPECT_TRUE(has(line_of<usage_error>([] { open_sink("run1"); }), "pip install pyarrow"));
    EXPECT_TRUE(has(line_of<usage_error>([] { recorded_run{"run1"}; }), "pip install pyarrow"));
    return;
  }
  const scratch_folder scratch;
  const std::string folder = (scratch.path() / "deep" / "run1").string();
  sink_multiplexer out{"run1"};
  out.add(open_sink(folder));
  out.publish(views(records_numbered(0, 9)));
  out.close();
  EXPECT_EQ(recorded_run{folder}.records(), 9U);
}

TEST(open_sink_test, asks_a_server_only_when_it_is_opened_or_says_how_to_get_http) {
  if (!has_http()) {
    const std::string line = line_of<usage_error>([] { open_sink("clickhouse://h:1/taps"); });
    EXPECT_TRUE(has(line, "libcpp-httplib-dev")) << line;
    return;
  }
  // Port 1: nobody has a database there.
  std::unique_ptr<record_sink> sink = open_sink("clickhouse://me:secret@127.0.0.1:1/taps");
  sink_multiplexer out{"run1"};
  const std::string line = line_of<usage_error>([&] { out.add(std::move(sink)); });
  EXPECT_EQ(line,
            "clickhouse://127.0.0.1:1/taps: nobody answers there, start the server or check host "
            "and port");
}

TEST(open_sink_test, refuses_what_is_no_sink) {
  line_of<usage_error>([] { open_sink("ftp://host/x"); });
}

}  // namespace
}  // namespace reprise::test
