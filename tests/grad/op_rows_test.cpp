// Every class of these headers that is a differentiable op has a row in the table of G6.
#include "tests/grad/op_rows.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace reprise::test {
namespace {

// Classes with a backward, by their names.
std::set<std::string> ops_in(const std::string& header) {
  std::ifstream in{std::string{REPRISE_SOURCE_DIR} + "/" + header};
  EXPECT_TRUE(in) << header;
  std::set<std::string> found;
  std::string name;
  const std::regex opens{"^(?:class|struct) (\\w+) .*\\{$"};
  const std::regex runs{"backward\\(backward_scope&( \\w+)?\\)"};  // a part of an op takes more
  for (std::string line; std::getline(in, line);) {
    std::smatch part;
    if (std::regex_search(line, part, opens)) name = part[1];
    if (std::regex_search(line, runs)) found.insert(name);
  }
  return found;
}

std::set<std::string> names_of(const std::map<std::string, op_row>& rows) {
  std::set<std::string> names;
  for (const auto& [name, row] : rows) names.insert(name);
  return names;
}

TEST(op_rows, are_there_for_every_op_class) {
  std::set<std::string> found = ops_in("scenarios/grad_ops.hpp");
  found.merge(ops_in("tests/grad/twofold.hpp"));
  EXPECT_EQ(found, names_of(op_rows()));
}

TEST(op_rows, are_there_for_every_layer_and_loss) {
  std::set<std::string> found;
  const std::filesystem::path room{std::string{REPRISE_SOURCE_DIR} + "/reprise/nn"};
  for (const auto& file : std::filesystem::directory_iterator{room}) {
    if (file.path().extension() != ".hpp") continue;
    found.merge(ops_in("reprise/nn/" + file.path().filename().string()));
  }
  EXPECT_EQ(found, names_of(nn_op_rows()));
}

}  // namespace
}  // namespace reprise::test
