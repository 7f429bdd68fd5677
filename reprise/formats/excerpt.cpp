#include "reprise/formats/excerpt.hpp"

#include <algorithm>

#include "reprise/formats/printable.hpp"

namespace reprise::formats {

namespace {

constexpr std::string_view gap = "...";

// Of well-formed UTF-8: the first byte of each character.
bool begins_a_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t most) {
  std::string line = printable(text);
  const auto characters = static_cast<std::size_t>(std::ranges::count_if(line, begins_a_character));
  if (characters <= most) return line;
  const std::size_t tail = (most - gap.size()) / 3;
  const std::size_t head = most - gap.size() - tail;
  std::string made;
  std::size_t at = 0;
  for (const char byte : line) {
    if (begins_a_character(byte) && at++ == head) made += gap;
    if (at <= head || at > characters - tail) made += byte;
  }
  return made;
}

}  // namespace reprise::formats
