// Source files as the house tests see them: a name relative to the root of the tree, and the text.
// Each rule is a function over these two, so that a test can hand it a wrong example.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::house {

struct source_file {
  std::string name;  // "reprise/device/graph.hpp"
  std::string text;

  bool ends_with(std::string_view ending) const { return name.ends_with(ending); }
};

using faults = std::vector<std::string>;  // one line each: where, what, which rule

// Every C++ and CUDA source below these folders of the tree, in order of name. A folder that is
// not there holds none.
std::vector<source_file> sources_under(std::initializer_list<std::string_view> folders);

// The same text, line for line, with blanks for comments; or for comments and the insides of
// string and character literals.
std::string without_comments(std::string_view text);
std::string code_alone(std::string_view text);

struct include {
  int line = 0;
  std::string path;
  bool quoted = false;  // "path", not <path>
};

std::vector<include> includes_of(std::string_view text);

// The line of the first place where `word` ("event", "sim::") begins an identifier, and ends it if
// it ends in a letter; 0: nowhere.
int line_of_word(std::string_view code, std::string_view word);

std::vector<std::string> lines_of(std::string_view text);

// "name:line: what"
std::string fault(const source_file& file, int line, std::string_view what);

// For EXPECT_EQ(listed(faults), ""): a failure prints each on a line of its own.
std::string listed(const faults& all);

}  // namespace reprise::house
