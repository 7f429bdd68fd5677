// What errors say and carry, and where destructors tell what failed.
#include "reprise/base/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "reprise/base/clock.hpp"

namespace reprise {
namespace {

call_place place_here(std::source_location from = std::source_location::current()) {
  return {"launch", "cuda:0", from};
}

std::vector<std::string> told;
void remember(std::string_view message) noexcept {
  told.emplace_back(message);
}

TEST(describe, names_call_device_reason_and_place_in_one_line) {
  const call_place place = place_here();
  const std::string line = std::to_string(place.from.line());
  EXPECT_EQ(describe(place, "no such stream"),
            "launch on cuda:0 failed: no such stream (error_test.cpp:" + line + ")");
}

TEST(describe, leaves_the_folder_of_the_source_out) {
  EXPECT_EQ(describe(place_here(), "x").find('/'), std::string::npos);
}

TEST(device_error, carries_call_device_and_place) {
  const call_place place = place_here();
  const device_error failure{place, "it broke"};
  EXPECT_EQ(failure.what(), describe(place, "it broke"));
  EXPECT_EQ(failure.call(), "launch");
  EXPECT_EQ(failure.device(), "cuda:0");
  EXPECT_EQ(failure.from().line(), place.from.line());
}

TEST(device_error, outlives_the_texts_that_it_was_made_from) {
  std::string call = "a call with a name that is too long for the small string buffer";
  const device_error failure{{call, "cpu", std::source_location::current()}, "why"};
  const std::string before = call;
  std::ranges::fill(call, '#');
  EXPECT_EQ(failure.call(), before);
}

TEST(out_of_memory, says_what_was_asked_what_is_free_and_what_to_do) {
  const out_of_memory failure{place_here(), 4096, 1024};
  EXPECT_EQ(failure.asked(), 4096U);
  EXPECT_EQ(failure.free(), 1024U);
  const std::string text = failure.what();
  EXPECT_NE(text.find("4096 bytes asked, 1024 free; drop recordings"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(errors, are_one_hierarchy_that_a_caller_can_catch_by_kind) {
  EXPECT_TRUE((std::is_base_of_v<error, usage_error>));
  EXPECT_TRUE((std::is_base_of_v<error, stale_error>));
  EXPECT_TRUE((std::is_base_of_v<device_error, capture_error>));
  EXPECT_TRUE((std::is_base_of_v<device_error, out_of_memory>));
  EXPECT_FALSE((std::is_base_of_v<capture_error, out_of_memory>));
  EXPECT_TRUE((std::is_base_of_v<std::runtime_error, error>));
}

TEST(error_handler, is_told_and_the_one_before_comes_back) {
  told.clear();
  const error_handler standard = set_error_handler(&remember);
  report_error("a stream could not be destroyed");
  EXPECT_EQ(set_error_handler(standard), &remember);
  EXPECT_EQ(told, std::vector<std::string>{"a stream could not be destroyed"});
}

TEST(error_handler, that_is_null_means_the_standard_one_again) {
  const error_handler standard = set_error_handler(&remember);
  set_error_handler(nullptr);
  testing::internal::CaptureStderr();
  report_error("one line");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "reprise: one line\n");
  EXPECT_EQ(set_error_handler(standard), standard);
}

TEST(clock, never_goes_back) {
  double last = now_us();
  for (int i = 0; i < 1000; ++i) {
    const double now = now_us();
    ASSERT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace reprise
