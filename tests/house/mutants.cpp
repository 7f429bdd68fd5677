#include "tests/house/mutants.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace reprise::house {
namespace {

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return std::string{text.substr(first, text.find_last_not_of(' ') - first + 1)};
}

std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('|', at), line.size());
    fields.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return fields;
}

bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

}  // namespace

std::vector<std::string> mutants_in(const source_file& file) {
  constexpr std::string_view word = "REPRISE_MUTANT(";
  std::vector<std::string> names;
  for (const auto& line : lines_of(code_alone(file.text))) {
    if (line.starts_with("#define")) continue;
    for (auto at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
      const auto begin = at + word.size();
      names.push_back(trimmed(std::string_view{line}.substr(begin, line.find(')', begin) - begin)));
    }
  }
  return names;
}

faults mutant_faults(const std::vector<source_file>& sources, std::string_view list) {
  faults found;
  const source_file file{"tests/mutants.txt", std::string{list}};
  std::set<std::string> listed;
  int number = 0;
  for (const auto& line : lines_of(list)) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const auto fields = fields_of(line);
    const bool whole = fields.size() == 4 && is_name(fields[0]) && !fields[2].empty() &&
                       fields[3].ends_with('.') &&
                       (fields[1] == "-" || fields[1].ends_with("_test"));
    if (!whole) {
      found.push_back(fault(file, number, "not name | test executable | filter | rule."));
    } else if (!listed.insert(fields[0]).second) {
      found.push_back(fault(file, number, fields[0] + " is there twice"));
    }
  }
  std::set<std::string> planted;
  for (const auto& source : sources) {
    for (const auto& name : mutants_in(source)) {
      planted.insert(name);
      if (!listed.contains(name)) {
        found.push_back(fault(source, line_of_word(source.text, name),
                              "mutant " + name + " is not in tests/mutants.txt"));
      }
    }
  }
  for (const auto& name : listed) {
    if (!planted.contains(name)) {
      found.push_back("tests/mutants.txt: no source has REPRISE_MUTANT(" + name + ")");
    }
  }
  return found;
}

}  // namespace reprise::house
