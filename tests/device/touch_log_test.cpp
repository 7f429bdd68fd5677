// The log of what a checked body touched: exact to the byte, joined into as few ranges as there
// are.
#include "reprise/device/touch_log.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace reprise {
namespace {

// Addresses that nothing is read from: the log looks at none.
const std::byte* at(std::uintptr_t address) {
  return reinterpret_cast<const std::byte*>(address);
}
constexpr std::uintptr_t base = 0x10000;
constexpr bool reads = false;
constexpr bool writes = true;

std::vector<touched_range> taken(touch_log& log) {
  const auto ranges = log.taken();
  return {ranges.begin(), ranges.end()};
}

using ranges = std::vector<touched_range>;

TEST(touch_log, says_nothing_of_nothing) {
  touch_log log;
  EXPECT_TRUE(log.taken().empty());
  log.note(at(base), 0, reads);
  log.note(nullptr, 0, writes);
  log.note(at(base + 64), 0, writes);
  EXPECT_TRUE(log.taken().empty());
}

TEST(touch_log, makes_one_range_of_a_loop_over_elements) {
  touch_log log;
  for (std::uintptr_t i = 0; i < 5000; ++i) {
    log.note(at(base + 4 + 4 * i), 4, reads);
    log.note(at(2 * base + 8 * i), 8, writes);
  }
  EXPECT_EQ(taken(log), (ranges{{at(base + 4), 20000, reads}, {at(2 * base), 40000, writes}}));
}

TEST(touch_log, joins_whatever_order_they_came_in) {
  touch_log log;
  for (std::uintptr_t i = 0; i < 1000; ++i) log.note(at(base + (i * 7 % 1000) * 4), 4, writes);
  for (std::uintptr_t i = 1000; i-- != 0;) log.note(at(3 * base + 2 * i), 2, reads);
  EXPECT_EQ(taken(log), (ranges{{at(3 * base), 2000, reads}, {at(base), 4000, writes}}));
}

TEST(touch_log, keeps_apart_what_does_not_touch) {
  touch_log log;
  log.note(at(base), 4, reads);
  log.note(at(base + 8), 4, reads);
  log.note(at(base + 4), 4, writes);
  EXPECT_EQ(taken(log),
            (ranges{{at(base), 4, reads}, {at(base + 8), 4, reads}, {at(base + 4), 4, writes}}));
}

TEST(touch_log, takes_spans_of_any_length_and_place) {
  for (const std::uintptr_t begin : {base, base + 1, base + 63, base + 4095, base - 1}) {
    for (const std::size_t bytes : {1UL, 2UL, 63UL, 64UL, 65UL, 128UL, 4096UL, 10001UL}) {
      touch_log log;
      log.note(at(begin), bytes, writes);
      log.note(at(begin + 0x100000), bytes, reads);
      EXPECT_EQ(taken(log),
                (ranges{{at(begin + 0x100000), bytes, reads}, {at(begin), bytes, writes}}));
    }
  }
}

TEST(touch_log, takes_no_read_of_what_was_written_before_for_one) {
  touch_log log;
  log.note(at(base), 100, writes);
  log.note(at(base), 100, reads);
  log.note(at(base + 90), 20, reads);
  EXPECT_EQ(taken(log), (ranges{{at(base + 100), 10, reads}, {at(base), 100, writes}}));
}

TEST(touch_log, remembers_a_read_that_came_before_the_write) {
  touch_log log;
  log.note(at(base), 8, reads);
  log.note(at(base), 16, writes);
  log.note(at(base), 16, reads);
  EXPECT_EQ(taken(log), (ranges{{at(base), 8, reads}, {at(base), 16, writes}}));
}

TEST(touch_log, goes_on_after_it_was_asked_and_forgets_when_told) {
  touch_log log;
  log.note(at(base), 4, writes);
  EXPECT_EQ(log.taken().size(), 1U);
  log.note(at(base + 4), 4, writes);
  EXPECT_EQ(taken(log), (ranges{{at(base), 8, writes}}));
  log.clear();
  EXPECT_TRUE(log.taken().empty());
  log.note(at(base), 4, reads);
  EXPECT_EQ(taken(log), (ranges{{at(base), 4, reads}})) << "it was not written since";
}

TEST(noting_touches, lasts_as_long_as_it_lives_and_nests) {
  touch_log outer;
  touch_log inner;
  EXPECT_EQ(touches_of_this_thread, nullptr);
  {
    const noting_touches noting{outer};
    {
      const noting_touches also{inner};
      EXPECT_EQ(touches_of_this_thread, &inner);
    }
    EXPECT_EQ(touches_of_this_thread, &outer);
  }
  EXPECT_EQ(touches_of_this_thread, nullptr);
}

// Against a map of single bytes, over more pages than the log keeps at hand.
TEST(touch_log, agrees_with_a_list_of_bytes) {
  std::mt19937_64 draw{20240817};
  touch_log log;
  for (int round = 0; round < 20; ++round) {
    log.clear();
    std::map<std::uintptr_t, int> bytes;  // bit 0: read, bit 1: written
    for (int i = 0; i < 3000; ++i) {
      const std::uintptr_t page = draw() % (round % 2 == 0 ? 3 : 300);
      const std::uintptr_t first = base + page * 4096 + draw() % 4096;
      const std::size_t count = 1 + draw() % (i % 50 == 0 ? 200 : 16);
      const bool is_write = draw() % 2 == 0;
      log.note(at(first), count, is_write);
      for (std::uintptr_t b = first; b < first + count; ++b) {
        int& seen = bytes[b];
        if (is_write) seen |= 2;
        if (!is_write && (seen & 2) == 0) seen |= 1;
      }
    }
    ranges expected;
    for (const bool kind : {reads, writes}) {
      bool open = false;
      for (const auto& [address, seen] : bytes) {
        if ((seen & (kind ? 2 : 1)) == 0) continue;
        open = open && !expected.empty() &&
               expected.back().begin + expected.back().bytes == at(address);
        if (open) {
          ++expected.back().bytes;
        } else {
          expected.push_back({at(address), 1, kind});
        }
        open = true;
      }
    }
    ASSERT_EQ(taken(log), expected) << round;
  }
}

}  // namespace
}  // namespace reprise
