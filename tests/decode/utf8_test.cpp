#include "apps/reprise/utf8.hpp"

#include <gtest/gtest.h>

namespace reprise::app {
namespace {

const std::string broken = "\xEF\xBF\xBD";

TEST(utf8, whole_characters_pass_unchanged) {
  for (const std::string text :
       {"plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x8E\xBC", "a\nb\tc"}) {
    EXPECT_EQ(as_utf8(text), text);
  }
}

TEST(utf8, broken_bytes_are_replaced_and_the_rest_is_kept) {
  EXPECT_EQ(as_utf8("a\x80z"), "a" + broken + "z");
  EXPECT_EQ(as_utf8("a\xC3z"), "a" + broken + "z");
  EXPECT_EQ(as_utf8("\xE2\x82"), broken);
  EXPECT_EQ(as_utf8("\xE2\x82\xC3\xA9"), broken + "\xC3\xA9");
}

TEST(utf8, overlong_forms_surrogates_and_what_is_past_the_last_are_broken) {
  EXPECT_EQ(as_utf8("\xC0\xAF"), broken + broken);
  EXPECT_EQ(as_utf8("\xE0\x80\xAF"), broken + broken + broken);
  EXPECT_EQ(as_utf8("\xED\xA0\x80"), broken + broken + broken);
  EXPECT_EQ(as_utf8("\xF4\x90\x80\x80"), broken + broken + broken + broken);
  EXPECT_EQ(as_utf8("\xFF"), broken);
}

TEST(utf8, a_character_cut_anywhere_comes_out_once_it_is_whole) {
  utf8_filter filter{true};
  EXPECT_EQ(filter.feed("\xF0"), "");
  EXPECT_EQ(filter.feed("\x9F\x8E"), "");
  EXPECT_EQ(filter.feed("\xBC!"), "\xF0\x9F\x8E\xBC!");
  EXPECT_EQ(filter.finish(), "");
  EXPECT_EQ(filter.feed("\xE2"), "");
  EXPECT_EQ(filter.finish(), broken);
}

TEST(utf8, a_terminal_gets_no_control_characters) {
  utf8_filter filter{true};
  EXPECT_EQ(filter.feed("a\x1b[2J\x07\r\n\t\x7f"),
            "a" + broken + "[2J" + broken + broken + "\n\t" + broken);
  EXPECT_EQ(filter.feed("\xC2\x9B"), broken);
  EXPECT_EQ(as_utf8("\x1b"), "\x1b") << "JSON escapes it";
}

}  // namespace
}  // namespace reprise::app
