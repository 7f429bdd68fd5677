// How much of a text that somebody typed is quoted.
#include "reprise/formats/excerpt.hpp"

#include <gtest/gtest.h>

namespace reprise::formats {
namespace {

TEST(excerpt, a_text_that_fits_is_quoted_whole) {
  const std::string eighty(80, 'x');
  EXPECT_EQ(excerpt(eighty), eighty);
  EXPECT_EQ(excerpt(""), "");
  EXPECT_EQ(excerpt("\xe6\xa8\xa1\xe5\x9e\x8b\xe6\xa8\xa1\xe5\x9e\x8b\xe6\xa8\xa1", 5),
            "\xe6\xa8\xa1\xe5\x9e\x8b\xe6\xa8\xa1\xe5\x9e\x8b\xe6\xa8\xa1")
      << "characters are counted, not bytes";
}

TEST(excerpt, a_longer_one_is_its_two_ends) {
  EXPECT_EQ(excerpt("0123456789abcdef", 15), "01234567...cdef");
  EXPECT_EQ(excerpt("0123456789abcdef", 16), "0123456789abcdef");
  EXPECT_EQ(excerpt("0123456789", 5), "01...");
  EXPECT_EQ(excerpt(std::string(10'000, 'x')).size(), 80U);
  EXPECT_EQ(excerpt("\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc", 6),
            "\xc3\xbc\xc3\xbc...\xc3\xbc")
      << "no character is split";
}

TEST(excerpt, it_is_printable) {
  EXPECT_EQ(excerpt("a\nb"), "a\\x0ab");
  EXPECT_EQ(excerpt(std::string(100, '\n'), 11), "\\x0a\\x...0a");
}

}  // namespace
}  // namespace reprise::formats
