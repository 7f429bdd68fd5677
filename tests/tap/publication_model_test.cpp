// T6: every order of stores that the fences of the publication protocol allow, tried; and each
// fence, once it is weaker, found to be needed.
#include "tests/tap/publication_model.hpp"

#include <gtest/gtest.h>

namespace reprise::test {
namespace {

publication_model::verdict tried(const publication_model::setup& how) {
  return publication_model{how}.explore();
}

TEST(T06_publication_model, the_host_never_sees_the_word_before_the_bytes) {
  for (const unsigned blocks : {1U, 2U, 3U}) {
    const auto found = tried({.blocks = blocks});
    EXPECT_GT(found.states, blocks == 1 ? 10U : 100U) << blocks;
    EXPECT_EQ(found.early, 0U) << blocks;
    EXPECT_EQ(found.complete, found.runs) << blocks;
  }
}

TEST(T06_publication_model, a_second_launch_counts_its_blocks_anew) {
  const auto found = tried({.blocks = 2, .launches = 2});
  EXPECT_EQ(found.early, 0U);
  EXPECT_EQ(found.complete, found.runs);
  const auto kept = tried({.blocks = 2, .launches = 2, .keeps_arrivals = true});
  EXPECT_LT(kept.complete, kept.runs);
}

TEST(T06_publication_model, each_fence_that_is_weakened_is_found) {
  using order = publication_orders;
  const order weaker[] = {
      {.arrive = std::memory_order_relaxed}, {.arrive = std::memory_order_release},
      {.arrive = std::memory_order_acquire}, {.publish = std::memory_order_relaxed},
      {.look = std::memory_order_relaxed},   {.publishes_to_system = false},
  };
  for (const order& one : weaker) {
    EXPECT_GT(tried({.orders = one, .blocks = 2}).early, 0U)
        << "arrive " << static_cast<int>(one.arrive) << " publish " << static_cast<int>(one.publish)
        << " look " << static_cast<int>(one.look);
  }
}

TEST(T06_publication_model, a_word_before_the_last_block_is_found) {
  EXPECT_GT(tried({.blocks = 2, .first_publishes = true}).early, 0U);
}

}  // namespace
}  // namespace reprise::test
