#include "reprise/cuda/arch.hpp"

#include <gtest/gtest.h>

namespace reprise::cuda {
namespace {

using chain = std::vector<std::string>;

TEST(arch_chain_of_a_card, begins_with_the_specific_code_of_hopper) {
  EXPECT_EQ(arch_chain(9, 0),
            (chain{"sm_90a", "sm_90", "sm_89", "sm_88", "sm_87", "sm_86", "sm_80", "sm_75"}));
}

TEST(arch_chain_of_a_card, has_no_specific_code_before_hopper) {
  EXPECT_EQ(arch_chain(8, 0), (chain{"sm_80", "sm_75"}));
  EXPECT_EQ(arch_chain(8, 9), (chain{"sm_89", "sm_88", "sm_87", "sm_86", "sm_80", "sm_75"}));
}

TEST(arch_chain_of_a_card, takes_family_code_of_earlier_minors_of_its_major_only) {
  EXPECT_EQ(arch_chain(12, 1),
            (chain{"sm_121a", "sm_121f", "sm_121", "sm_120f", "sm_120", "sm_110", "sm_103",
                   "sm_100", "sm_90", "sm_89", "sm_88", "sm_87", "sm_86", "sm_80", "sm_75"}));
  EXPECT_EQ(arch_chain(10, 0).at(1), "sm_100f");
}

TEST(arch_chain_of_a_card, serves_a_card_that_is_newer_than_this_build) {
  const chain future = arch_chain(13, 0);
  ASSERT_GE(future.size(), 4u);
  EXPECT_EQ(chain(future.begin(), future.begin() + 4),
            (chain{"sm_130a", "sm_130f", "sm_130", "sm_121"}));
}

}  // namespace
}  // namespace reprise::cuda
