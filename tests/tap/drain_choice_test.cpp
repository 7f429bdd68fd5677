// Which way the drain takes is what was faster for rounds of that size, and is asked again.
#include "reprise/tap/drain_choice.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

constexpr std::uint64_t small = 32U << 10, large = 32U << 20;

// `rounds` rounds of these bytes, which the engine moves at one rate and the kernel at another; how
// many went by the kernel.
int by_kernel(drain_choice& choice, int rounds, std::uint64_t bytes, double engine, double kernel) {
  int taken = 0;
  for (int i = 0; i < rounds; ++i) {
    const drain_way way = choice.next(bytes);
    const bool is_kernel = way == drain_way::kernel;
    taken += is_kernel ? 1 : 0;
    choice.took(way, bytes, static_cast<double>(bytes) / (is_kernel ? kernel : engine));
  }
  return taken;
}

TEST(drain_choice, is_what_was_asked_for_where_something_was) {
  drain_choice kernel{drain_way::kernel};
  drain_choice engine{drain_way::copy_engine};
  EXPECT_EQ(by_kernel(kernel, 10, small, 9, 1), 10);
  EXPECT_EQ(by_kernel(engine, 10, small, 1, 9), 0);
}

TEST(drain_choice, tries_both_and_keeps_to_the_faster_for_each_size_apart) {
  drain_choice choice{drain_way::measured};
  EXPECT_EQ(by_kernel(choice, 100, small, 10, 40), 98);
  EXPECT_EQ(by_kernel(choice, 100, large, 50, 40), 2);
  EXPECT_EQ(by_kernel(choice, 10, small, 10, 40), 10);
}

TEST(drain_choice, asks_again_and_changes_its_mind) {
  drain_choice choice{drain_way::measured};
  by_kernel(choice, 100, large, 50, 40);
  const int later = by_kernel(choice, 6 * 256, large, 20, 40);
  EXPECT_GT(later, 5 * 256) << "the engine has become slower than the kernel was";
  drain_choice other{drain_way::measured};
  by_kernel(other, 4, large, 50, 40);
  EXPECT_EQ(by_kernel(other, 252, large, 50, 40), 1) << "one trial in 256 rounds";
}

// On a device that owns time nothing is measured: the engine, but for the trials.
TEST(drain_choice, without_times_is_the_copy_engine) {
  drain_choice choice{drain_way::measured};
  int taken = 0;
  for (int i = 0; i < 250; ++i) taken += choice.next(large) == drain_way::kernel ? 1 : 0;
  EXPECT_EQ(taken, 2);
}

}  // namespace
}  // namespace reprise
