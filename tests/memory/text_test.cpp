// Texts that cannot be trained on are one line, and batches are drawn from the seed alone.
#include "workloads/memory/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/memory/support.hpp"
#include "tests/support/observe.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

using memory::byte_batch;
using memory::draw_batch;
using memory::read_text;

std::string refusal(const std::filesystem::path& file, std::int64_t least) {
  const std::string told = test::message_of<usage_error>([&] { read_text(file, least); });
  EXPECT_EQ(std::ranges::count(told, '\n'), 0) << told;
  return told;
}

TEST(a_text, that_cannot_be_read_is_refused_by_its_name) {
  EXPECT_EQ(refusal("/nowhere/x.txt", 2),
            "text \"/nowhere/x.txt\": the file cannot be read; give a text file");
  EXPECT_TRUE(test::has(refusal(testing::TempDir(), 2), "cannot be read"));
}

TEST(a_text, that_is_empty_or_too_short_is_refused) {
  const test::text_file empty{""};
  EXPECT_TRUE(test::has(refusal(empty.path(), 2), "the file is empty; give one with text in it"));
  const test::text_file brief{"abcd"};
  EXPECT_EQ(read_text(brief.path(), 4), "abcd");
  EXPECT_TRUE(test::has(refusal(brief.path(), 5), "the file has 4 bytes"));
}

TEST(the_text, that_ships_is_plain_ascii_and_whole) {
  const std::string text = read_text(test::shipped_text(), 200000);
  EXPECT_TRUE(text.starts_with("Ge1:1 In the beginning God created the heaven and the earth.\n"));
  EXPECT_TRUE(text.ends_with("and he was put in a coffin in Egypt.\n"));
  EXPECT_TRUE(std::ranges::all_of(
      text, [](unsigned char c) { return c == '\n' || (c >= 0x20 && c < 0x7f); }));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1533) << "verses";
}

TEST(a_batch, is_streams_of_neighbours_and_the_byte_behind_each) {
  const std::string text = test::few_lines;
  const byte_batch drawn = draw_batch(text, 3, 0, {3, 10});
  ASSERT_EQ(drawn.bytes.size(), 30U);
  ASSERT_EQ(drawn.targets.size(), 30U);
  for (std::size_t stream = 0; stream < 3; ++stream) {
    std::string eleven;
    for (std::size_t t = 0; t < 10; ++t) {
      eleven += memory::byte_of(drawn.bytes[stream * 10 + t]);
      if (t == 0) continue;
      EXPECT_EQ(drawn.targets[stream * 10 + t - 1], drawn.bytes[stream * 10 + t]);
    }
    eleven += memory::byte_of(drawn.targets[stream * 10 + 9]);
    EXPECT_NE(text.find(eleven), std::string::npos) << eleven;
  }
}

TEST(a_batch, is_the_same_for_the_same_seed_and_number) {
  const std::string text = test::few_lines;
  const auto bytes = [&](std::uint64_t seed, std::uint64_t number) {
    return draw_batch(text, seed, number, {2, 8}).bytes;
  };
  EXPECT_EQ(bytes(1, 4), bytes(1, 4));
  EXPECT_NE(bytes(1, 4), bytes(1, 5));
  EXPECT_NE(bytes(1, 4), bytes(2, 4));
}

TEST(a_batch, reaches_the_first_and_the_last_byte_of_a_text) {
  std::set<std::int32_t> begins;
  for (std::uint64_t number = 0; number < 100; ++number) {
    const byte_batch drawn = draw_batch("abcd", 1, number, {1, 2});
    begins.insert(drawn.bytes[0]);
    EXPECT_EQ(drawn.targets[1], drawn.bytes[0] + 2);
  }
  EXPECT_EQ(begins, (std::set<std::int32_t>{'a', 'b'}));
}

TEST(a_byte, is_a_token_and_back) {
  EXPECT_EQ(memory::token_of('\xff'), 255);
  EXPECT_EQ(memory::byte_of(255), '\xff');
  EXPECT_EQ(memory::token_of('a'), 97);
}

}  // namespace
}  // namespace reprise
