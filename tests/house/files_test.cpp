// Every source keeps to the file rules, and each rule is shown to bite.
#include "tests/house/files.hpp"

#include <gtest/gtest.h>

namespace reprise::house {
namespace {

faults of(std::string name, std::string text) {
  return file_faults({std::move(name), std::move(text)});
}

TEST(files, keep_to_the_rules) {
  faults found;
  const auto files =
      sources_under({"reprise", "workloads", "scenarios", "bench", "apps", "examples", "tests"});
  for (const auto& file : files) {
    for (auto& one : file_faults(file)) found.push_back(std::move(one));
  }
  EXPECT_EQ(listed(found), "");
  EXPECT_GT(files.size(), 60u) << "the sources were not found";
}

TEST(files, of_400_lines_are_found) {
  std::string text = "// long\n";
  for (int line = 2; line <= 399; ++line) text += "\n";
  EXPECT_TRUE(of("a.cpp", text).empty());
  EXPECT_EQ(of("a.cpp", text + "\n").size(), 1u);
}

TEST(files, open_with_a_comment_or_their_own_header) {
  EXPECT_TRUE(of("reprise/base/error.cpp", "#include \"reprise/base/error.hpp\"\n").empty());
  EXPECT_TRUE(of("reprise/base/error.cpp", "// What it is.\n#include <string>\n").empty());
  EXPECT_EQ(of("reprise/base/error.cpp", "#include \"reprise/base/ids.hpp\"\n").size(), 1u);
  EXPECT_EQ(of("reprise/base/error.cpp", "int x;\n").size(), 1u);
  EXPECT_TRUE(of("tests/base/error_test.cpp", "#include \"reprise/base/error.hpp\"\n").empty());
  EXPECT_EQ(of("tests/base/error_test.cpp", "#include \"reprise/base/ids.hpp\"\n").size(), 1u);
  EXPECT_EQ(of("tests/base/error_test.cpp", "#include <gtest/gtest.h>\n").size(), 1u);
  EXPECT_EQ(of("reprise/base/error.hpp", "#pragma once\n").size(), 1u);
}

TEST(files, a_header_is_read_once) {
  EXPECT_TRUE(of("a.hpp", "// what\n#pragma once\n").empty());
  EXPECT_EQ(of("a.hpp", "// what\n").size(), 1u);
  EXPECT_EQ(of("a.cuh", "// what\n// #pragma once\n").size(), 1u);
}

TEST(files, take_in_no_whole_namespace) {
  EXPECT_EQ(of("a.cpp", "// what\nusing namespace std;\n").size(), 1u);
  EXPECT_TRUE(of("a.cpp", "// no `using namespace` here\n").empty());
}

TEST(files, name_no_folder_of_one_machine) {
  for (const std::string folder : {"home", "work", "root"}) {
    EXPECT_EQ(of("a.cpp", "// see /" + folder + "/main\n").size(), 1u) << folder;
  }
  EXPECT_TRUE(of("a.cpp", "// framework/x, at /usr/local/cuda\n").empty());
}

TEST(files, are_plain_ascii_but_for_an_ellipsis) {
  EXPECT_TRUE(of("a.cpp", "// f(a, b, \xe2\x80\xa6)\n").empty());
  EXPECT_EQ(of("a.cpp", "// 5 \xc2\xb5s\n").size(), 1u);
  EXPECT_EQ(of("a.cpp", "//\nconst char* dash = \"\xe2\x80\x94\";\n").size(), 1u);
}

TEST(files, end_their_last_line) {
  EXPECT_EQ(of("a.cpp", "// what").size(), 1u);
}

}  // namespace
}  // namespace reprise::house
