// Records of a watched run, behind their queues: a run directory and a table have what a function
// saw in the same run, record by record.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "reprise/records/arrow/arrow_sink.hpp"
#include "reprise/records/open_sink.hpp"
#include "reprise/tap/monitor.hpp"
#include "tests/decode/support.hpp"
#include "tests/records/clickhouse_process.hpp"
#include "tests/records/run_support.hpp"

namespace reprise::test {
namespace {

// A batch of five requests that come and go, with all rows sent to `where` and, in place, here.
std::vector<owned_record> watch_into(const std::string& spec, const std::string& where) {
  const device opened = open_for_test(spec, 1);
  std::vector<owned_record> seen;
  monitor_options how;
  how.run = 7;
  how.run_name = "five requests";
  how.ring_bytes = how.staging_bytes = 1U << 22;
  monitor eye{opened, how};
  eye.watch({"*", row_mode::real()});
  eye.deliver_to([&](const tap_record& one) { seen.emplace_back(one); });
  eye.send_to(open_sink(where), {.name = "out"});
  decode::decode_options o =
      tiny_options({"In the beginning ", "x", "And it came", "The LORD", "Blessed are the "}, 6);
  o.batch_sizes = {1, 2, 4};
  decode::run_decode(
      opened, o, [](std::size_t, const decode::request&) {}, eye.observer(),
      [&](std::span<const request_rows> rows) { eye.plan_step(rows); });
  eye.stop();
  const sink_counts counts = eye.sink_counts().at(0).counts;
  EXPECT_EQ(counts.lost + eye.counts().lost + eye.counts().dropped, 0U);
  EXPECT_EQ(counts.delivered, seen.size());
  EXPECT_EQ(seen.size(), eye.counts().records);
  return seen;
}

class watched_records_test : public run_test, public testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(devices, watched_records_test,
                         testing::Values("cpu", "sim:seed=1", "sim:seed=2"),
                         [](const auto& p) { return test_name(p.param); });

TEST_P(watched_records_test, are_in_a_run_directory_as_they_were_seen) {
  const std::vector<owned_record> seen = watch_into(GetParam(), folder.string());
  EXPECT_TRUE(read_back(folder) == seen);
  const recorded_run run{folder};
  EXPECT_EQ(run.name(), "five requests");
  EXPECT_EQ(run.state(), run_state::closed);
  EXPECT_EQ(run.lost(), 0U);
}

std::string line_about(const owned_record& one) {
  std::string hex;
  for (const std::byte b : one.bytes) hex += fmt::format("{:02X}", std::to_integer<unsigned>(b));
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}", one.step, one.kind, one.layer, one.request,
                     one.first_row, one.rows, hex);
}

TEST(watched_table_test, has_what_a_function_saw) {
  if (!has_http()) GTEST_SKIP() << "this build has no cpp-httplib: install libcpp-httplib-dev";
  if (!clickhouse_process::is_installed()) GTEST_SKIP() << "there is no clickhouse-server";
  const clickhouse_process server;
  std::vector<std::string> lines;
  for (const owned_record& one : watch_into("cpu", server.address().text())) {
    lines.push_back(line_about(one));
  }
  std::ranges::sort(lines);
  const std::string got = server.ask(
      "SELECT step, kind, layer, request, first_row, rows, hex(bytes) FROM reprise_records "
      "WHERE run_name = 'five requests' AND run = 7 FORMAT TabSeparated");
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < got.size();) {
    const std::size_t end = got.find('\n', at);
    rows.push_back(got.substr(at, end - at));
    at = end + 1;
  }
  std::ranges::sort(rows);
  EXPECT_TRUE(rows == lines) << rows.size() << " rows, " << lines.size() << " records";
}

}  // namespace
}  // namespace reprise::test
