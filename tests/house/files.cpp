#include "tests/house/files.hpp"

#include <algorithm>
#include <array>

namespace reprise::house {
namespace {

bool is_header(const source_file& file) {
  return file.ends_with(".hpp") || file.ends_with(".cuh");
}

// "reprise/base/error.cpp" -> "reprise/base/error.hpp"
// A source's own header is beside it; a test's is the header of what it tests.
bool is_own_header(const source_file& file, std::string_view included) {
  const std::string stem = file.name.substr(0, file.name.rfind('.'));
  if (!stem.ends_with("_test")) return included == stem + ".hpp";
  const auto name = stem.substr(stem.rfind('/') + 1, stem.size() - stem.rfind('/') - 6);
  return included.ends_with('/' + name + ".hpp");
}

// Folders of one machine. Written in two parts, so that this file is none of its own finds.
constexpr std::array<std::string_view, 3> machine_folders{
    "/ho"
    "me/",
    "/wo"
    "rk/",
    "/ro"
    "ot/"};

// Plain ASCII, so that every compiler, terminal and grep reads the same; the ellipsis of "f(a,
// ...)" is the one exception.
bool is_plain(std::string line) {
  constexpr std::string_view ellipsis = "\xe2\x80\xa6";
  for (auto at = line.find(ellipsis); at != std::string::npos; at = line.find(ellipsis, at)) {
    line.erase(at, ellipsis.size());
  }
  return std::ranges::all_of(line, [](unsigned char c) { return c < 0x80; });
}

std::string opening(const source_file& file) {
  if (file.text.starts_with("//")) return {};
  if (is_header(file)) return "a header opens with a comment: what it is, who calls it";
  const auto includes = includes_of(file.text);
  if (file.text.starts_with("#include") && is_own_header(file, includes.front().path)) {
    return {};
  }
  return "opens with a comment or with its own header";
}

}  // namespace

faults file_faults(const source_file& file) {
  faults found;
  const auto lines = lines_of(file.text);
  if (static_cast<int>(lines.size()) > most_lines) {
    found.push_back(fault(file, most_lines + 1, "400 lines or more: two ideas?"));
  }
  if (const auto wrong = opening(file); !wrong.empty()) found.push_back(fault(file, 1, wrong));
  if (is_header(file) && std::ranges::find(lines, "#pragma once") == lines.end()) {
    found.push_back(fault(file, 1, "no #pragma once"));
  }
  if (!file.text.ends_with('\n')) found.push_back(fault(file, 1, "the last line does not end"));

  const auto code = lines_of(code_alone(file.text));
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const int line = static_cast<int>(at) + 1;
    if (line_of_word(code[at], "using namespace") > 0) {
      found.push_back(fault(file, line, "using namespace"));
    }
    if (!is_plain(lines[at])) found.push_back(fault(file, line, "not plain ASCII"));
    for (const auto folder : machine_folders) {
      if (lines[at].find(folder) != std::string::npos) {
        found.push_back(fault(file, line, "a path of one machine: " + std::string{folder}));
      }
    }
  }
  return found;
}

}  // namespace reprise::house
