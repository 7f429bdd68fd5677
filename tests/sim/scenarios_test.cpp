// Every scenario holds under many seeds, and every planted bug is found under few.
//
// REPRISE_SIM_SEEDS says how many seeds each scenario gets; by default about 3,000 over all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "reprise/platform/explore.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/observe.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise::test {
namespace {

using scenarios::all_scenarios;
using scenarios::planted_bug;
using scenarios::scenario;

constexpr std::uint64_t seeds_of_planted_bugs = 200;

constexpr std::uint64_t default_seeds = test::sanitized ? 10 : 90;

std::uint64_t seeds() {
  const char* const asked = std::getenv("REPRISE_SIM_SEEDS");
  return asked != nullptr ? std::stoull(asked) : default_seeds;
}

explore_options with_their_kernels() {
  explore_options options;
  options.kernels = scenarios::scenario_kernels();
  return options;
}

class each_scenario : public testing::TestWithParam<std::string> {
 protected:
  const scenario& of() const { return *scenarios::find_scenario(GetParam()); }
  std::string repeat() const { return "reprise sim --scenario " + GetParam() + " --seed {}"; }
};

TEST_P(each_scenario, holds_under_every_seed) {
  const exploration seen = explore(seeds(), of().run, with_their_kernels());
  EXPECT_TRUE(seen.failures.empty()) << text_of(seen, repeat());
  EXPECT_EQ(seen.seeds, seeds());
}

TEST_P(each_scenario, comes_to_its_landmarks) {
  explore_options options = with_their_kernels();
  options.landmarks.assign(of().landmarks.begin(), of().landmarks.end());
  if (options.landmarks.empty()) return;
  const exploration seen = explore(200, of().run, options);
  EXPECT_EQ(seen.landmarks_missed, std::vector<std::string>{});
}

TEST_P(each_scenario, gives_one_run_for_one_seed) {
  for (const std::uint64_t seed : {1U, 2U, 77U}) {
    const seed_run once = explore_seed(seed, of().run, with_their_kernels());
    const seed_run again = explore_seed(seed, of().run, with_their_kernels());
    ASSERT_EQ(once.trace, again.trace) << "seed " << seed;
    EXPECT_EQ(once.operations, again.operations);
    EXPECT_EQ(once.landmarks, again.landmarks);
    for (const std::string& line : once.trace) {
      ASSERT_FALSE(has(line, "0x")) << "an address, which is another in each run: " << line;
    }
  }
}

TEST_P(each_scenario, holds_on_every_device) {
  for (const std::string& name : devices_under_test()) {
    SCOPED_TRACE(name);
    const reports reported;
    const device opened = open_device(name, {.threads = 2}, scenarios::scenario_kernels());
    for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(of().run(opened));
    EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  }
}

TEST_P(each_scenario, has_planted_bugs_that_are_each_found) {
  explore_options options = with_their_kernels();
  options.shortening_seeds = 0;
  for (const planted_bug& bug : of().bugs) {
    SCOPED_TRACE(bug.name);
    const exploration seen = explore(seeds_of_planted_bugs, bug.run, options);
    if (seen.failures.empty()) {
      ADD_FAILURE() << "not found in " << seeds_of_planted_bugs << " seeds";
      continue;
    }
    const failed_seed& found = seen.failures.front();
    EXPECT_TRUE(std::ranges::find(bug.kinds, found.kind) != bug.kinds.end())
        << found.kind << ": " << found.what << "\n"
        << found.trace;
    RecordProperty(std::string{bug.name}, std::to_string(found.seed));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const scenario& one : all_scenarios()) all.emplace_back(one.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(all, each_scenario, testing::ValuesIn(names()),
                         [](const auto& of) { return of.param; });

TEST(scenarios, are_many_and_each_is_named_once) {
  const std::vector<std::string> all = names();
  EXPECT_GE(all.size(), 14U);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(scenarios, have_twenty_planted_bugs_that_say_what_was_forgotten) {
  std::set<std::string> bugs;
  for (const scenario& one : all_scenarios()) {
    EXPECT_TRUE(one.says.ends_with('.')) << one.name;
    for (const planted_bug& bug : one.bugs) {
      EXPECT_TRUE(bugs.insert(std::string{one.name} + "/" + std::string{bug.name}).second);
      EXPECT_TRUE(bug.says.ends_with('.')) << bug.name;
      EXPECT_FALSE(bug.kinds.empty()) << bug.name;
    }
  }
  EXPECT_GE(bugs.size(), 20U);
}

TEST(scenarios, that_give_a_wrong_result_say_where) {
  const std::string message =
      message_of<scenarios::wrong_result>([] { scenarios::require(false, "one is two"); });
  EXPECT_TRUE(message.starts_with("wrong result: one is two (scenarios_test.cpp:")) << message;
  EXPECT_NO_THROW(scenarios::require(true, "one is one"));
}

TEST(scenarios, are_found_by_name) {
  EXPECT_EQ(scenarios::find_scenario("decode")->name, "decode");
  EXPECT_EQ(scenarios::find_scenario("nothing"), nullptr);
}

}  // namespace
}  // namespace reprise::test
