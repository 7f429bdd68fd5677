#include "reprise/replay/contract.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reprise {
namespace {

class contract_test : public ::testing::Test {
 protected:
  contract_test() {
    declared.uses("weight", weight);
    declared.fact("adapter", adapter);
    declared.fact("mode", [this] { return mode; });
  }

  contract terms() { return contract{declared, {x.from_host(values)}}; }

  std::vector<float> place = std::vector<float>(4);
  std::vector<float> values = std::vector<float>(3);
  parameter weight{as_tensor(view<float>{place.data(), 4}), {}};
  version_counter adapter;
  std::uint64_t mode = 7;
  signature declared{"demo"};
  input<float> x = declared.in<float>("x", {any});
};

TEST_F(contract_test, holds_while_nothing_changes) {
  const contract recorded = terms();
  EXPECT_EQ(recorded.facts(), 4U);
  EXPECT_TRUE(recorded.holds());
  EXPECT_TRUE(recorded.explain().empty());
}

TEST_F(contract_test, a_moved_weight_breaks_it_and_both_addresses_are_named) {
  const contract recorded = terms();
  weight.value.data += 4;
  EXPECT_FALSE(recorded.holds());
  const std::vector<breach> why = recorded.explain();
  ASSERT_EQ(why.size(), 1U);
  EXPECT_EQ(why[0].fact, "weight address");
  EXPECT_NE(why[0].expected, why[0].actual);
  EXPECT_FALSE(why[0].remedy.empty());
}

TEST_F(contract_test, each_fact_alone_breaks_it_under_its_own_name) {
  const contract recorded = terms();
  weight.version.bump();
  ASSERT_EQ(recorded.explain().size(), 1U);
  EXPECT_EQ(recorded.explain()[0].fact, "weight version");
  const contract again = terms();
  adapter.bump();
  ASSERT_EQ(again.explain().size(), 1U);
  EXPECT_EQ(again.explain()[0].fact, "adapter");
  const contract third = terms();
  mode = 8;
  ASSERT_EQ(third.explain().size(), 1U);
  EXPECT_EQ(third.explain()[0].fact, "mode");
  EXPECT_EQ(third.explain()[0].expected, "0x7");
  EXPECT_EQ(third.explain()[0].actual, "0x8");
}

TEST_F(contract_test, two_broken_facts_are_two_entries_in_the_order_of_declaration) {
  const contract recorded = terms();
  mode = 8;
  weight.version.bump();
  const std::vector<breach> why = recorded.explain();
  ASSERT_EQ(why.size(), 2U);
  EXPECT_EQ(why[0].fact, "weight version");
  EXPECT_EQ(why[1].fact, "mode");
}

TEST_F(contract_test, other_shapes_do_not_fit) {
  const contract recorded = terms();
  EXPECT_TRUE(recorded.fits({x.from_host(values)}));
  values.push_back(0);
  EXPECT_FALSE(recorded.fits({x.from_host(values)}));
  EXPECT_TRUE(recorded.holds()) << "another shape is another recording, not a breach";
}

}  // namespace
}  // namespace reprise
