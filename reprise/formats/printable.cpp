#include "reprise/formats/printable.hpp"

#include <fmt/format.h>

#include <iterator>
#include <optional>

namespace reprise::formats {

namespace {

// A name up to the first of these is shown whole; a longer one keeps a head and a tail.
constexpr std::size_t longest_whole_bytes = 96;
constexpr std::size_t head_bytes = 64;
constexpr std::size_t tail_bytes = 24;

struct code_point {
  char32_t value;
  std::size_t bytes;
};

constexpr bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u;
}

// The code point that `text` begins with; none where the bytes are not UTF-8. Overlong forms,
// surrogates and values past U+10FFFF are not (Unicode 15, table 3-7).
std::optional<code_point> first_code_point(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80u) return code_point{lead, 1};
  if (lead < 0xc2u || lead > 0xf4u) return std::nullopt;

  const std::size_t bytes = lead < 0xe0u ? 2 : lead < 0xf0u ? 3 : 4;
  if (text.size() < bytes) return std::nullopt;
  char32_t value = lead & (0x7fu >> bytes);
  for (const char byte : text.substr(1, bytes - 1)) {
    if (!is_continuation(byte)) return std::nullopt;
    value = (value << 6) | (static_cast<unsigned char>(byte) & 0x3fu);
  }
  const char32_t smallest = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < smallest || surrogate || value > 0x10ffff) return std::nullopt;
  return code_point{value, bytes};
}

constexpr bool is_safe_on_a_line(char32_t value) {
  const bool control = value < 0x20 || (value >= 0x7f && value <= 0x9f);
  const bool line_break = value == 0x2028 || value == 0x2029;
  const bool direction_mark = value == 0x061c || value == 0x200e || value == 0x200f ||
                              (value >= 0x202a && value <= 0x202e) ||
                              (value >= 0x2066 && value <= 0x2069);
  return !control && !line_break && !direction_mark;
}

// Appends the printable form; quotation marks are escaped only between quotation marks.
void append_printable(std::string& line, std::string_view text, bool between_quotes) {
  while (!text.empty()) {
    const std::optional<code_point> point = first_code_point(text);
    const std::string_view piece = text.substr(0, point ? point->bytes : 1);
    text.remove_prefix(piece.size());
    if (!point || !is_safe_on_a_line(point->value)) {
      for (const char byte : piece) {
        fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
      continue;
    }
    if (piece == "\\" || (between_quotes && piece == "\"")) line += '\\';
    line += piece;
  }
}

}  // namespace

std::size_t well_formed_bytes(std::string_view text) noexcept {
  std::size_t good = 0;
  while (const std::optional<code_point> point = first_code_point(text.substr(good))) {
    good += point->bytes;
  }
  return good;
}

std::string printable(std::string_view text) {
  std::string line;
  append_printable(line, text, false);
  return line;
}

std::string quoted_name(std::string_view name) {
  std::string line = "\"";
  if (name.size() <= longest_whole_bytes) {
    append_printable(line, name, true);
    return line += '"';
  }
  // Neither cut may split a character: its halves would print as broken bytes.
  std::size_t head = head_bytes;
  while (head > head_bytes - 4 && is_continuation(name[head])) --head;
  std::size_t tail = name.size() - tail_bytes;
  while (tail < name.size() - tail_bytes + 4 && is_continuation(name[tail])) ++tail;

  append_printable(line, name.substr(0, head), true);
  line += "...";
  append_printable(line, name.substr(tail), true);
  return line += fmt::format("\" ({} bytes)", name.size());
}

}  // namespace reprise::formats
