#include "reprise/replay/contract.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "reprise/replay/outcome.hpp"

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
  EXPECT_TRUE(recorded.holds(declared));
  EXPECT_TRUE(recorded.explain(declared).empty());
}

TEST_F(contract_test, a_moved_weight_breaks_it_and_both_addresses_are_named) {
  const contract recorded = terms();
  weight.value.data += 4;
  EXPECT_FALSE(recorded.holds(declared));
  const std::vector<breach> why = recorded.explain(declared);
  ASSERT_EQ(why.size(), 1U);
  EXPECT_EQ(why[0].fact, "weight address");
  EXPECT_NE(why[0].expected, why[0].actual);
  EXPECT_FALSE(why[0].remedy.empty());
}

TEST_F(contract_test, each_fact_alone_breaks_it_under_its_own_name) {
  const contract recorded = terms();
  weight.version.bump();
  ASSERT_EQ(recorded.explain(declared).size(), 1U);
  EXPECT_EQ(recorded.explain(declared)[0].fact, "weight version");
  const contract again = terms();
  adapter.bump();
  ASSERT_EQ(again.explain(declared).size(), 1U);
  EXPECT_EQ(again.explain(declared)[0].fact, "adapter");
  const contract third = terms();
  mode = 8;
  ASSERT_EQ(third.explain(declared).size(), 1U);
  EXPECT_EQ(third.explain(declared)[0].fact, "mode");
  EXPECT_EQ(third.explain(declared)[0].expected, "0x7");
  EXPECT_EQ(third.explain(declared)[0].actual, "0x8");
}

TEST_F(contract_test, two_broken_facts_are_two_entries_in_the_order_of_declaration) {
  const contract recorded = terms();
  mode = 8;
  weight.version.bump();
  const std::vector<breach> why = recorded.explain(declared);
  ASSERT_EQ(why.size(), 2U);
  EXPECT_EQ(why[0].fact, "weight version");
  EXPECT_EQ(why[1].fact, "mode");
}

TEST(a_reason, tells_the_first_breaches_and_how_many_more_there_are) {
  reason why{"fact changed", {}};
  EXPECT_EQ(why.text(), "fact changed");
  for (const char* fact : {"a", "b", "c"}) why.breaches.push_back({fact, "1", "2", "do it"});
  EXPECT_EQ(why.text(),
            "fact changed; a: expected 1, actual 2; do it; b: expected 1, actual 2; do it; "
            "c: expected 1, actual 2; do it");
  why.breaches.push_back({"d", "1", "2", "do it"});
  why.breaches.push_back({"e", "1", "2", "do it"});
  EXPECT_TRUE(why.text().ends_with("c: expected 1, actual 2; do it; and 2 more")) << why.text();
}

TEST_F(contract_test, other_shapes_do_not_fit) {
  const contract recorded = terms();
  EXPECT_TRUE(recorded.fits(declared, {x.from_host(values)}));
  values.push_back(0);
  EXPECT_FALSE(recorded.fits(declared, {x.from_host(values)}));
  EXPECT_TRUE(recorded.holds(declared)) << "another shape is another recording, not a breach";
}

TEST_F(contract_test, a_call_that_leaves_an_input_out_does_not_fit) {
  const auto mask = declared.optional_in<float>("mask", {any});
  const contract recorded{declared, {x.from_host(values), mask.from_host(values)}};
  EXPECT_TRUE(recorded.fits(declared, {mask.from_host(values), x.from_host(values)}));
  EXPECT_FALSE(recorded.fits(declared, {x.from_host(values)}));
  const contract without{declared, {x.from_host(values)}};
  EXPECT_FALSE(without.fits(declared, {x.from_host(values), mask.from_host(values)}));
}

TEST_F(contract_test, another_value_of_a_key_part_does_not_fit) {
  std::uint64_t branch = 1;
  declared.key("branch", [&] { return branch; });
  const contract recorded = terms();
  std::vector<std::uint64_t> parts;
  const std::uint64_t hash = contract::hash(declared, {x.from_host(values)}, parts);
  EXPECT_EQ(parts, (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(recorded.hash(), hash);
  branch = 2;
  EXPECT_FALSE(recorded.fits(declared, {x.from_host(values)}));
  EXPECT_NE(contract::hash(declared, {x.from_host(values)}, parts), hash);
  EXPECT_TRUE(recorded.holds(declared)) << "another key is no breach";
}

}  // namespace
}  // namespace reprise
