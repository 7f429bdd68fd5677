// How a fuzz target says that a promise is broken: it stops, so that the fuzzer keeps the input.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace reprise::fuzz {

inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// What every refusal is, whatever was refused: one printable line that begins with the file.
inline void require_one_line(std::string_view line, std::string_view file) {
  require(line.starts_with(file), "the line begins with the file's name");
  require(line.size() < 1000, "the line is short");
  require(std::ranges::none_of(
              line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }),
          "the line has no control characters");
}

}  // namespace reprise::fuzz
