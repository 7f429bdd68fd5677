// JSON read strictly: paths, kinds of values, and every fault that a lenient reader lets pass.
#include "reprise/formats/json_events.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace reprise::formats {
namespace {

// "kind path/path=value" for every event, so that a whole reading is one comparison.
std::string told(std::string_view text) {
  std::string lines;
  const auto fault = read_json(text, [&](const json_event& event) {
    constexpr std::string_view kinds[] = {"object", "array", "end", "text", "natural", "other"};
    lines += kinds[static_cast<std::size_t>(event.kind)];
    for (const std::string& key : event.path) lines += "/" + key;
    if (event.kind == json_kind::text) lines.append("=").append(event.text);
    if (event.kind == json_kind::natural) lines.append("=").append(std::to_string(event.natural));
    lines += ' ';
  });
  return fault ? lines + "FAULT " + describe(*fault) : lines;
}

std::string fault_of(std::string_view text) {
  const auto fault = read_json(text, [](const json_event&) {});
  return fault ? describe(*fault) : "none";
}

TEST(json_events, every_value_comes_with_its_path) {
  EXPECT_EQ(told(R"({"a":{"b":[1,"x"],"c":null},"d":2})"),
            "object object/a array/a/b natural/a/b/=1 text/a/b/=x end/a/b other/a/c end/a "
            "natural/d=2 end ");
}

TEST(json_events, only_plain_whole_numbers_are_natural) {
  EXPECT_EQ(told("[0,18446744073709551615]"),
            "array natural/=0 natural/=18446744073709551615 end ");
  EXPECT_EQ(told("[-0,-1,1.0,1e2,18446744073709551616]"),
            "array other/ other/ other/ other/ other/ end ");
}

TEST(json_events, a_key_may_come_again_only_in_another_object) {
  EXPECT_EQ(fault_of(R"({"a":{"x":1},"b":{"x":1}})"), "none");
  EXPECT_EQ(fault_of(R"({"a":1,"b":2,"a":3})"), R"(has the key "a" twice)");
  EXPECT_EQ(fault_of(R"({"a":1,"\u0061":3})"), R"(has the key "a" twice)");
}

TEST(json_events, text_after_a_zero_byte_is_not_overlooked) {
  EXPECT_EQ(fault_of(std::string_view{"{}\0x", 4}), "is not JSON at byte 3");
}

TEST(json_events, broken_text_is_told_with_its_place) {
  EXPECT_EQ(fault_of(""), "is not JSON at byte 1");
  EXPECT_EQ(fault_of(R"({"a":nul})"), "is not JSON at byte 9");
  EXPECT_EQ(fault_of("{} {}"), "is not JSON at byte 4");
  EXPECT_EQ(fault_of("{\"a\xff\":1}"), "is not UTF-8 at byte 4");
  EXPECT_EQ(fault_of(R"({"\ud800":1})"), "is not JSON at byte 9");  // half of a surrogate pair
  EXPECT_EQ(fault_of("[1e999]"), "is not JSON at byte 6");
}

TEST(json_events, depth_has_a_limit_and_costs_no_stack) {
  EXPECT_EQ(fault_of(std::string(64, '[') + std::string(64, ']')), "none");
  EXPECT_EQ(fault_of(std::string(65, '[') + std::string(65, ']')), "is nested deeper than 64");
  EXPECT_EQ(fault_of(std::string(20'000'000, '[')), "is nested deeper than 64");
}

TEST(json_events, an_exception_of_the_reader_passes_through) {
  EXPECT_THROW(read_json("[1]", [](const json_event&) { throw std::logic_error{"enough"}; }),
               std::logic_error);
}

}  // namespace
}  // namespace reprise::formats
