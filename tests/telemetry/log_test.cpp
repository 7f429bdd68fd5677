// Lines for people: where they go, and who gets them when several threads speak.
#include "reprise/telemetry/log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace reprise {
namespace {

TEST(log_sink, gets_each_line_as_it_was_said) {
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  log_line("recorded again: weight 'w' moved");
  log_line("");
  set_log_sink({});
  EXPECT_EQ(lines, (std::vector<std::string>{"recorded again: weight 'w' moved", ""}));
}

TEST(log_sink, that_is_empty_writes_one_line_to_stderr) {
  set_log_sink({});
  testing::internal::CaptureStderr();
  log_line("refused: no memory");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reprise: refused: no memory\n");
}

TEST(log_sink, takes_a_line_that_is_not_ended_by_a_zero) {
  const std::string text = "one two";
  set_log_sink({});
  testing::internal::CaptureStderr();
  log_line(std::string_view{text}.substr(0, 3));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reprise: one\n");
}

TEST(log_sink, that_is_replaced_comes_back_and_can_be_put_back) {
  int first = 0;
  int second = 0;
  set_log_sink([&](std::string_view) { ++first; });
  log_sink before = set_log_sink([&](std::string_view) { ++second; });
  log_line("to the second");
  set_log_sink(std::move(before));
  log_line("to the first");
  set_log_sink({});
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(log_line, from_many_threads_reaches_the_sink_one_at_a_time) {
  std::vector<std::string> lines;  // not guarded: the log must not call its sink twice at once
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  std::vector<std::thread> speakers;
  for (int t = 0; t < 4; ++t) {
    speakers.emplace_back([] {
      for (int i = 0; i < 100; ++i) log_line("x");
    });
  }
  for (std::thread& s : speakers) s.join();
  set_log_sink({});
  EXPECT_EQ(lines.size(), 400U);
}

}  // namespace
}  // namespace reprise
