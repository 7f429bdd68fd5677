#include "tests/house/build_lists.hpp"

#include <algorithm>
#include <cctype>

#include "tests/house/rooms.hpp"

namespace reprise::house {
namespace {

// The words of a CMake file, comments left out; parentheses are words.
std::vector<std::string> words_of(std::string_view cmake_lists) {
  std::vector<std::string> words;
  for (const auto& line : lines_of(cmake_lists)) {
    std::string word;
    for (const char c : line.substr(0, line.find('#')) + ' ') {
      const bool ends = std::isspace(static_cast<unsigned char>(c)) != 0 || c == '(' || c == ')';
      if (!ends) {
        word += c;
        continue;
      }
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
      if (c == '(' || c == ')') words.emplace_back(1, c);
    }
  }
  return words;
}

}  // namespace

faults unlisted_faults(const source_file& file, std::string_view cmake_lists) {
  const auto own_name = file.name.substr(file.name.rfind('/') + 1);
  const auto words = words_of(cmake_lists);
  if (std::ranges::find(words, own_name) != words.end()) return {};
  return {fault(file, 1, "its folder's CMakeLists.txt does not name it")};
}

faults needs_faults(std::string_view room, std::string_view cmake_lists) {
  faults found;
  bool needed = false;
  for (const auto& word : words_of(cmake_lists)) {
    const bool keyword = word == "SOURCES" || word == "CUDA" || word == "LIBRARIES";
    if (word == "NEEDS") {
      needed = true;
    } else if (keyword || word == ")") {
      needed = false;
    } else if (needed && !may_use(room, word)) {
      found.push_back(std::string{room} + ": NEEDS " + word + " goes against the arrows");
    }
  }
  return found;
}

}  // namespace reprise::house
