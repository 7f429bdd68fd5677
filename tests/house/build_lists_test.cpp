// Every source is built, and no room links what it may not include.
#include "tests/house/build_lists.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/house/rooms.hpp"

namespace reprise::house {
namespace {

const std::filesystem::path root = REPRISE_SOURCE_DIR;

std::string cmake_lists_of(const std::filesystem::path& folder) {
  std::ifstream in{root / folder / "CMakeLists.txt"};
  return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(build_lists, name_every_source) {
  faults found;
  for (const auto& file :
       sources_under({"reprise", "workloads", "scenarios", "bench", "apps", "examples", "tests"})) {
    if (!file.ends_with(".cpp") && !file.ends_with(".cu")) continue;
    if (file.name.starts_with("tests/fuzz/")) continue;  // its function adds the ".cpp"
    const auto folder = std::filesystem::path{file.name}.parent_path();
    for (auto& one : unlisted_faults(file, cmake_lists_of(folder))) found.push_back(std::move(one));
  }
  EXPECT_EQ(listed(found), "");
}

TEST(build_lists, ask_only_for_rooms_along_the_arrows) {
  faults found;
  for (const auto& entry : std::filesystem::directory_iterator{root / "reprise"}) {
    if (!entry.is_directory()) continue;
    const auto room = entry.path().filename().string();
    for (auto& one : needs_faults(room, cmake_lists_of(entry.path()))) found.push_back(one);
  }
  EXPECT_EQ(listed(found), "");
}

TEST(build_lists, a_source_that_is_not_named_is_found) {
  const source_file source{"reprise/base/error.cpp", {}};
  EXPECT_TRUE(unlisted_faults(source, "reprise_room(base SOURCES error.cpp)").empty());
  EXPECT_EQ(unlisted_faults(source, "reprise_room(base SOURCES error.cpp.in terror.cpp)").size(),
            1u);
  EXPECT_EQ(unlisted_faults(source, "reprise_room(base SOURCES\n  # error.cpp\n  ids.cpp)").size(),
            1u);
}

TEST(build_lists, a_need_against_the_arrows_is_found) {
  EXPECT_TRUE(needs_faults("ops", "reprise_room(ops SOURCES a.cpp NEEDS kernel base)").empty());
  EXPECT_EQ(listed(needs_faults("kernel", "reprise_room(kernel NEEDS device ops\n LIBRARIES fmt)")),
            "kernel: NEEDS ops goes against the arrows\n");
  EXPECT_EQ(needs_faults("replay", "reprise_room(replay NEEDS sim)").size(), 1u);
}

}  // namespace
}  // namespace reprise::house
