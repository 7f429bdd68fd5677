// The suite itself: one test suite for each rule on each device, and no rule with few cases.
#include <map>

#include "tests/conformance/conformance.hpp"
#include "tests/conformance/rules.hpp"

namespace reprise::test {

// A further device is one line in tests/support/devices.hpp.
INSTANTIATE_TEST_SUITE_P(, rule_01, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_02, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_03, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_04, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_05, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_06, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_07, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_08, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_09, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_10, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_11, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_12, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_13, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_14, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_15, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_16, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_17, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_18, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_19, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_20, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_21, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_22, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(, rule_23, each_device(), device_of);

namespace {

// How many cases each rule has on one device; by the names that reports carry too.
std::map<int, int> cases_on(const std::string& device) {
  std::map<int, int> cases;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    const std::string_view name = suite.name();
    if (!name.starts_with("rule_")) continue;
    for (int j = 0; j < suite.total_test_count(); ++j) {
      if (std::string_view{suite.GetTestInfo(j)->name()}.ends_with("/" + test_name(device)))
        ++cases[std::stoi(std::string{name.substr(5, 2)})];
    }
  }
  return cases;
}

TEST(the_suite, has_three_cases_or_more_for_each_rule_on_each_device) {
  for (const std::string& device : devices_under_test()) {
    const std::map<int, int> cases = cases_on(device);
    EXPECT_EQ(cases.size(), rules.size()) << device;
    for (const rule& each : rules) {
      EXPECT_TRUE(cases.contains(each.number) && cases.at(each.number) >= 3)
          << "rule " << each.number << " on " << device;
    }
  }
}

TEST(the_suite, has_a_sentence_for_each_rule_in_order) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    EXPECT_EQ(rules[i].number, static_cast<int>(i + 1));
    EXPECT_TRUE(rules[i].says.ends_with('.')) << rules[i].says;
  }
}

// Without it, every case about work in flight would assert nothing on a GPU.
class the_harness : public conformance {};

TEST_P(the_harness, holds_a_stream_exactly_where_work_runs_later) {
  event passed{dev()};
  held_stream held{s()};
  passed.record(s());
  EXPECT_EQ(held.holds(), runs_later());
  EXPECT_EQ(passed.finished(), !runs_later());
  held.release();
  passed.synchronize();
  EXPECT_FALSE(held.holds());
}

INSTANTIATE_TEST_SUITE_P(, the_harness, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
