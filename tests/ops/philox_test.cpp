#include "reprise/ops/philox.hpp"

#include <gtest/gtest.h>

namespace reprise::REPRISE_BODIES::ops {
namespace {

constexpr std::uint64_t word(std::uint32_t low, std::uint32_t high) {
  return low | static_cast<std::uint64_t>(high) << 32;
}

void expect_words(const philox_words& got, const std::uint32_t (&want)[4]) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.at[i], want[i]) << "word " << i;
}

// kat_vectors of Random123, the authors' own code: philox4x32 10.
TEST(philox, gives_the_published_answer_for_zeros) {
  expect_words(philox(0, 0, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}

TEST(philox, gives_the_published_answer_for_ones) {
  expect_words(philox(~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}),
               {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
}

TEST(philox, gives_the_published_answer_for_digits_of_pi) {
  expect_words(philox(word(0xa4093822, 0x299f31d0), word(0x243f6a88, 0x85a308d3),
                      word(0x13198a2e, 0x03707344)),
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

}  // namespace
}  // namespace reprise::REPRISE_BODIES::ops
