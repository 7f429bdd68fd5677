// T6: every order of stores that the publication protocol allows, tried; and each of its orders,
// once it is weaker, found to be needed.
#include "tests/tap/publication_model.hpp"

#include <gtest/gtest.h>

namespace reprise::test {
namespace {

publication_model::verdict tried(const publication_model::setup& how) {
  return publication_model{how}.explore();
}

TEST(T06_publication_model, the_host_never_sees_a_word_before_the_bytes) {
  for (const unsigned producers : {1U, 2U}) {
    for (const unsigned blocks : {1U, 2U}) {
      const auto found = tried({.producers = producers, .blocks = blocks});
      EXPECT_GT(found.states, 10U) << producers << " " << blocks;
      EXPECT_EQ(found.early, 0U) << producers << " " << blocks;
      EXPECT_EQ(found.complete, found.runs) << producers << " " << blocks;
    }
  }
}

TEST(T06_publication_model, what_is_said_is_taken_back) {
  for (const bool second_is_off : {false, true}) {
    const auto found = tried({.blocks = 1, .launches = 2, .second_is_off = second_is_off});
    EXPECT_EQ(found.early, 0U);
    EXPECT_GT(found.runs, 0U);
    EXPECT_EQ(found.complete, found.runs) << second_is_off;
  }
  const auto kept = tried({.blocks = 1, .launches = 2, .second_is_off = true, .takes_back = false});
  EXPECT_LT(kept.complete, kept.runs);
}

TEST(T06_publication_model, each_order_that_is_weakened_is_found) {
  using order = publication_orders;
  const order weaker[] = {
      {.publish = std::memory_order_relaxed},
      {.look = std::memory_order_relaxed},
      {.publishes_to_system = false},
  };
  for (const order& one : weaker) {
    EXPECT_GT(tried({.orders = one}).early, 0U)
        << "publish " << static_cast<int>(one.publish) << " look " << static_cast<int>(one.look);
  }
}

TEST(T06_publication_model, a_publisher_that_does_not_wait_is_found) {
  const auto found = tried({.waits = false});
  EXPECT_GT(found.early, 0U);
  EXPECT_LT(found.complete, found.runs) << "it finds nothing taken yet";
}

}  // namespace
}  // namespace reprise::test
