// Each landmark and fault point of the library is one that a scenario must reach.
#include <gtest/gtest.h>

#include <set>

#include "tests/house/source.hpp"

namespace reprise::house {
namespace {

// The names in calls such as landmark("pool: joined neighbours").
std::set<std::string> named_by(const std::string& call, std::string_view text) {
  std::set<std::string> names;
  const std::string opening = call + "(\"";
  for (auto at = text.find(opening); at != text.npos; at = text.find(opening, at + 1)) {
    const auto begin = at + opening.size();
    names.emplace(text.substr(begin, text.find('"', begin) - begin));
  }
  return names;
}

TEST(landmarks, are_each_one_that_a_scenario_must_reach) {
  std::string scenarios;
  for (const auto& file : sources_under({"scenarios"})) scenarios += without_comments(file.text);
  faults found;
  for (const auto& file : sources_under({"reprise"})) {
    for (const std::string& call : {"landmark", "fault_point"}) {
      for (const auto& name : named_by(call, without_comments(file.text))) {
        if (scenarios.find('"' + name + '"') != scenarios.npos) continue;
        found.push_back(fault(file, 1, "no scenario must reach '" + name + "'"));
      }
    }
  }
  EXPECT_EQ(listed(found), "");
}

TEST(landmarks, are_found_by_name) {
  EXPECT_EQ(named_by("landmark", "landmark(\"a\"); if (x) landmark(\"b: c\");"),
            (std::set<std::string>{"a", "b: c"}));
  EXPECT_TRUE(named_by("landmark", "fault_point(\"a\")").empty());
}

}  // namespace
}  // namespace reprise::house
