// Lines that are muted are not seen; others go where they went before, then and after.
#include "reprise/telemetry/muted_lines.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise {
namespace {

bool begins_with_x(std::string_view line) {
  return line.starts_with('x');
}

TEST(muted_lines_test, are_not_seen_while_they_are_muted) {
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  {
    const muted_lines quiet{begins_with_x};
    log_line("x is planned");
    log_line("y is not");
  }
  log_line("x is news again");
  set_log_sink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"y is not", "x is news again"}));
}

TEST(muted_lines_test, leave_others_to_stderr_where_no_sink_is_installed) {
  set_log_sink({});
  testing::internal::CaptureStderr();
  {
    const muted_lines quiet{begins_with_x};
    log_line("x");
    log_line("y");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reprise: y\n");
}

}  // namespace
}  // namespace reprise
