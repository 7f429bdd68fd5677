#include "reprise/replay/budget.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace reprise {
namespace {

TEST(a_byte_budget, takes_no_more_than_its_limit) {
  byte_budget budget{100};
  EXPECT_TRUE(budget.charge(60));
  EXPECT_FALSE(budget.charge(41));
  EXPECT_EQ(budget.held(), 60U);
  EXPECT_TRUE(budget.charge(40));
  EXPECT_EQ(budget.free(), 0U);
  budget.give_back(100);
  EXPECT_EQ(budget.held(), 0U);
  EXPECT_EQ(budget.most_held(), 100U);
}

TEST(a_byte_budget, gets_back_what_a_share_held_when_it_goes) {
  byte_budget budget{100};
  {
    budget_share share{budget};
    EXPECT_TRUE(share.become(70));
    EXPECT_FALSE(share.become(101));
    EXPECT_EQ(share.bytes(), 70U);
    EXPECT_TRUE(share.become(30));
    EXPECT_EQ(budget.held(), 30U);
    budget_share moved{std::move(share)};
    EXPECT_EQ(moved.bytes(), 30U);
    EXPECT_EQ(share.bytes(), 0U);
    budget_share other{budget};
    EXPECT_FALSE(other.become(71));
    EXPECT_TRUE(other.become(70));
    EXPECT_EQ(budget.free(), 0U);
  }
  EXPECT_EQ(budget.held(), 0U);
}

}  // namespace
}  // namespace reprise
