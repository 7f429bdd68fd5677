// Names that somebody else chose, on a line of ours.
#include "reprise/formats/printable.hpp"

#include <gtest/gtest.h>

#include <string>

namespace reprise::formats {
namespace {

TEST(printable_text, plain_names_stay_as_they_are) {
  EXPECT_EQ(printable("model.layers.0.weight"), "model.layers.0.weight");
  EXPECT_EQ(printable("models/j\xc3\xbcrgen/\xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\xa6\x99"),
            "models/j\xc3\xbcrgen/\xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\xa6\x99");
}

TEST(printable_text, what_could_break_or_colour_the_line_is_escaped) {
  EXPECT_EQ(printable("a\nb\r\t\x1b[31m\x7f"), R"(a\x0ab\x0d\x09\x1b[31m\x7f)");
  EXPECT_EQ(printable(std::string_view{"a\0b", 3}), R"(a\x00b)");
  EXPECT_EQ(printable("\xc2\x85\xe2\x80\xa8\xe2\x80\xa9"), R"(\xc2\x85\xe2\x80\xa8\xe2\x80\xa9)");
}

TEST(printable_text, marks_that_reorder_the_line_are_escaped) {
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "gpj.exe"),
            R"(\xe2\x80\xaegpj.exe)");
  EXPECT_EQ(printable("\xe2\x81\xa6"), R"(\xe2\x81\xa6)");
}

TEST(printable_text, bytes_that_are_not_utf8_are_escaped) {
  EXPECT_EQ(printable("\xff"
                      "a\xc3"),
            R"(\xffa\xc3)");
  EXPECT_EQ(printable("\xc0\xaf"), R"(\xc0\xaf)");  // overlong, and so are the next two
  EXPECT_EQ(printable("\xe0\x80\xaf"), R"(\xe0\x80\xaf)");
  EXPECT_EQ(printable("\xf0\x80\x80\xaf"), R"(\xf0\x80\x80\xaf)");
  EXPECT_EQ(printable("\xed\xa0\x80"), R"(\xed\xa0\x80)");          // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");  // past U+10FFFF
}

TEST(printable_text, two_names_never_print_alike) {
  EXPECT_EQ(printable(R"(a\x0a)"), R"(a\\x0a)");
  EXPECT_EQ(quoted_name(R"(a"b\)"), R"("a\"b\\")");
}

TEST(printable_text, a_very_long_name_shows_its_ends_and_its_length) {
  EXPECT_EQ(quoted_name(std::string(96, 'x')), '"' + std::string(96, 'x') + '"');
  EXPECT_EQ(quoted_name(std::string(500, 'x') + std::string(500, 'y')),
            '"' + std::string(64, 'x') + "..." + std::string(24, 'y') + "\" (1000 bytes)");
}

TEST(printable_text, shortening_never_splits_a_character) {
  for (std::size_t offset = 0; offset < 4; ++offset) {
    std::string name(offset, 'x');
    for (int at = 0; at < 100; ++at) name += "\xf0\x9f\xa6\x99";
    name.append(offset, 'y');
    EXPECT_EQ(quoted_name(name).find("\\x"), std::string::npos) << quoted_name(name);
  }
}

TEST(printable_text, well_formed_bytes_stop_at_the_first_that_is_not) {
  EXPECT_EQ(well_formed_bytes(""), 0u);
  EXPECT_EQ(well_formed_bytes("ab\xc3\xbc"), 4u);
  EXPECT_EQ(well_formed_bytes("ab\xc3"), 2u);
  EXPECT_EQ(well_formed_bytes("ab\x80 cd"), 2u);
  EXPECT_EQ(well_formed_bytes("\xe2\x82\xac\xe2\x82"), 3u);
}

}  // namespace
}  // namespace reprise::formats
