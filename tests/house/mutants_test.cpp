// Every mutant is listed with its test, and every line of the list has its mutant.
#include "tests/house/mutants.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace reprise::house {
namespace {

std::string list_of_mutants() {
  std::ifstream in{std::filesystem::path{REPRISE_SOURCE_DIR} / "tests/mutants.txt"};
  return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(mutants, are_listed_with_the_test_that_kills_each) {
  EXPECT_EQ(listed(mutant_faults(sources_under({"reprise", "workloads"}), list_of_mutants())), "");
}

const std::vector<source_file> one_mutant{
    {"a.cpp",
     "#define REPRISE_MUTANT(name) false\n// REPRISE_MUTANT(in_a_comment)\n"
     "if (!REPRISE_MUTANT(one)) order();\n"}};

TEST(mutants, are_found_where_they_are_planted) {
  EXPECT_EQ(mutants_in(one_mutant[0]), std::vector<std::string>{"one"});
  EXPECT_EQ(mutants_in({"b.cpp", "REPRISE_MUTANT(two) || REPRISE_MUTANT(three)\n"}),
            (std::vector<std::string>{"two", "three"}));
}

TEST(mutants, that_are_not_listed_are_found) {
  EXPECT_EQ(listed(mutant_faults(one_mutant, "")),
            "a.cpp:3: mutant one is not in tests/mutants.txt\n");
  EXPECT_TRUE(mutant_faults(one_mutant, "one | a_test | all.* | Work is in order.\n").empty());
  EXPECT_TRUE(mutant_faults(one_mutant, "# why\n\none | - | sim | Work is in order.\n").empty());
}

TEST(mutants, that_nobody_planted_are_found) {
  const std::string line = "one | a_test | all.* | Work is in order.\n";
  EXPECT_EQ(mutant_faults({}, line).size(), 1u);
  EXPECT_EQ(mutant_faults(one_mutant, line + line).size(), 1u) << "it is there twice";
}

TEST(mutants, without_a_test_or_a_rule_are_found) {
  for (const std::string line :
       {"one | a_test | all.*", "one | a_test | all.* | ", "one | a_test | | Work is in order.",
        "one | a_tool | all.* | Work is in order."}) {
    EXPECT_FALSE(mutant_faults(one_mutant, line).empty()) << line;
  }
}

}  // namespace
}  // namespace reprise::house
