#include "apps/reprise/text_display.hpp"

#include <gtest/gtest.h>

#include <string>

namespace reprise::app {
namespace {

class text_display_test : public ::testing::Test {
 protected:
  ~text_display_test() override { std::fclose(file); }

  std::string shown() {
    std::fflush(file);
    std::rewind(file);
    std::string text;
    for (int c = 0; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
    return text;
  }
  void say(text_display& display, std::size_t request, const std::string& text) {
    for (const char c : text) display.token(request, static_cast<unsigned char>(c));
  }

  std::FILE* file = std::tmpfile();
};

TEST_F(text_display_test, one_prompt_streams_behind_its_own_text) {
  text_display display{file, {"In the "}, true};
  say(display, 0, "beg");
  EXPECT_EQ(shown(), "In the beg");
  say(display, 0, "inning");
  display.end(0);
  EXPECT_EQ(shown(), "In the beginning\n\n");
}

TEST_F(text_display_test, later_requests_wait_for_their_turn) {
  text_display display{file, {"A", "B", "C"}, true};
  say(display, 0, "1");
  say(display, 1, "2");
  say(display, 2, "3");
  display.end(2);
  EXPECT_EQ(shown(), "[1] A1");
  display.end(0);
  EXPECT_EQ(shown(), "[1] A1\n\n[2] B2");
  say(display, 1, "4");
  display.end(1);
  EXPECT_EQ(shown(), "[1] A1\n\n[2] B24\n\n[3] C3\n\n");
}

TEST_F(text_display_test, tokens_that_are_no_bytes_are_numbers) {
  text_display display{file, {"1 2 > "}, false};
  display.token(0, 300);
  display.token(0, 7);
  display.end(0);
  EXPECT_EQ(shown(), "1 2 > 300 7 \n\n");
}

}  // namespace
}  // namespace reprise::app
