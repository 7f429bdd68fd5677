// Which records a filter takes, and what is no filter.
#include "reprise/records/record_filter.hpp"

#include <gtest/gtest.h>

#include "tests/records/support.hpp"

namespace reprise::test {
namespace {

std::vector<std::uint64_t> taken(std::string_view filter, std::uint64_t of = 40) {
  const record_filter made = parse_record_filter(filter);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t n = 0; n < of; ++n) {
    const owned_record record = record_number(n);
    if (made.takes(record.view())) numbers.push_back(n);
  }
  return numbers;
}

using numbers = std::vector<std::uint64_t>;

TEST(record_filter_test, takes_what_passes_each_of_its_fields) {
  EXPECT_EQ(taken("").size(), 40U);
  EXPECT_EQ(taken("point=resid_pre").size(), 20U);
  EXPECT_EQ(taken("point=resid_pre,layer=1,step=0").size(), 2U);
  EXPECT_EQ(taken("point=resid_pre,layer=1,step=0"), (numbers{1, 5}));
  EXPECT_EQ(taken("request=7"), (numbers{7, 17, 27, 37}));
  EXPECT_EQ(taken("step=1-2").size(), 16U);
  EXPECT_EQ(taken("step=0+4"), (numbers{0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39}));
  EXPECT_EQ(taken("content=scores,request=2-3+6"), (numbers{2, 6, 22, 26}));
  EXPECT_EQ(taken("run=18").size(), 0U);
}

TEST(record_filter_test, takes_a_point_without_a_layer_only_where_no_layer_is_asked_for) {
  EXPECT_EQ(taken("point=final_norm").size(), 10U);
  EXPECT_EQ(taken("point=final_norm,layer=0-1000").size(), 0U);
}

TEST(record_filter_test, takes_one_shard_of_those_that_there_are_and_whole_tensors_as_the_first) {
  EXPECT_EQ(taken("point=final_norm,shard=1", 24), (numbers{7, 15, 23}));
  EXPECT_EQ(taken("point=final_norm,shard=0", 24), (numbers{3, 11, 19}));
  EXPECT_EQ(taken("point=resid_pre,shard=0", 8), (numbers{0, 1, 4, 5}));
  EXPECT_EQ(taken("shard=2-9").size(), 0U);
}

TEST(record_filter_test, takes_a_record_that_has_one_of_the_tokens) {
  // Record n has 1 + n % 3 rows from token n / 10 on.
  EXPECT_EQ(taken("token=3,request=0-1", 40), (numbers{11, 20, 30, 31}));
  EXPECT_EQ(taken("token=5", 40), (numbers{32, 35, 38}));
}

TEST(record_filter_test, that_is_none_is_refused_by_the_field_that_is_wrong) {
  for (const auto& [filter, named] : {std::pair{"point", "point"},
                                      {"point=", "point="},
                                      {"poimt=x", "poimt=x"},
                                      {"layer=a", "layer=a"},
                                      {"layer=3-", "layer=3-"},
                                      {"layer=-3", "layer=-3"},
                                      {"layer=5-3", "layer=5-3"},
                                      {"shard=1of2", "shard=1of2"},
                                      {"step=1+", "step=1+"},
                                      {"step=1,step=2", "step=2"},
                                      {"point=a,point=b", "point=b"},
                                      {"content=row", "content=row"},
                                      {"step=1,", "comma"},
                                      {"step=18446744073709551616", "18446744073709551616"},
                                      {",step=1", "no value"}}) {
    const std::string line = line_of<usage_error>([&] { parse_record_filter(filter); });
    EXPECT_TRUE(has(line, named)) << filter << "\n" << line;
  }
}

}  // namespace
}  // namespace reprise::test
