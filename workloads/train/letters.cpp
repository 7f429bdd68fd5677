#include "workloads/train/letters.hpp"

#include <algorithm>
#include <array>

namespace reprise::train {

namespace {

struct bitmap {
  char letter;
  std::array<std::uint8_t, letter_height> rows;  // the highest of five bits is the left dot
};

constexpr std::array<bitmap, 20> bitmaps{{
    {' ', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b00000}},
    {'-', {0b00000, 0b00000, 0b00000, 0b01110, 0b00000, 0b00000, 0b00000}},
    {'a', {0b00000, 0b00000, 0b01110, 0b00001, 0b01111, 0b10001, 0b01111}},
    {'b', {0b10000, 0b10000, 0b11110, 0b10001, 0b10001, 0b10001, 0b11110}},
    {'c', {0b00000, 0b00000, 0b01110, 0b10001, 0b10000, 0b10001, 0b01110}},
    {'d', {0b00001, 0b00001, 0b01111, 0b10001, 0b10001, 0b10001, 0b01111}},
    {'e', {0b00000, 0b00000, 0b01110, 0b10001, 0b11111, 0b10000, 0b01110}},
    {'g', {0b00000, 0b01111, 0b10001, 0b10001, 0b01111, 0b00001, 0b01110}},
    {'h', {0b10000, 0b10000, 0b10110, 0b11001, 0b10001, 0b10001, 0b10001}},
    {'i', {0b00100, 0b00000, 0b01100, 0b00100, 0b00100, 0b00100, 0b01110}},
    {'k', {0b10000, 0b10000, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010}},
    {'l', {0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
    {'n', {0b00000, 0b00000, 0b10110, 0b11001, 0b10001, 0b10001, 0b10001}},
    {'o', {0b00000, 0b00000, 0b01110, 0b10001, 0b10001, 0b10001, 0b01110}},
    {'p', {0b00000, 0b00000, 0b11110, 0b10001, 0b11110, 0b10000, 0b10000}},
    {'r', {0b00000, 0b00000, 0b10110, 0b11001, 0b10000, 0b10000, 0b10000}},
    {'s', {0b00000, 0b00000, 0b01111, 0b10000, 0b01110, 0b00001, 0b11110}},
    {'t', {0b01000, 0b01000, 0b11100, 0b01000, 0b01000, 0b01001, 0b00110}},
    {'u', {0b00000, 0b00000, 0b10001, 0b10001, 0b10001, 0b10011, 0b01101}},
    {'v', {0b00000, 0b00000, 0b10001, 0b10001, 0b10001, 0b01010, 0b00100}},
}};

const bitmap* find(char letter) {
  const auto found = std::ranges::find(bitmaps, letter, &bitmap::letter);
  return found == bitmaps.end() ? nullptr : &*found;
}

void draw_dot(grey_picture& into, std::int64_t left, std::int64_t top, std::int64_t dot,
              std::uint8_t grey) {
  for (std::int64_t y = std::max<std::int64_t>(top, 0); y < std::min(top + dot, into.height); ++y) {
    for (std::int64_t x = std::max<std::int64_t>(left, 0); x < std::min(left + dot, into.width);
         ++x) {
      into.pixels[static_cast<std::size_t>(y * into.width + x)] = grey;
    }
  }
}

}  // namespace

bool has_letter(char letter) {
  return find(letter) != nullptr;
}

void draw_text(grey_picture& into, std::int64_t x, std::int64_t y, std::string_view text,
               std::int64_t dot, std::uint8_t grey) {
  for (const char letter : text) {
    const bitmap* const drawn = find(letter);
    for (std::int64_t row = 0; drawn != nullptr && row < letter_height; ++row) {
      for (std::int64_t column = 0; column < letter_width; ++column) {
        const int bit = drawn->rows[static_cast<std::size_t>(row)] >> (letter_width - 1 - column);
        if ((bit & 1) != 0) draw_dot(into, x + column * dot, y + row * dot, dot, grey);
      }
    }
    x += (letter_width + 1) * dot;
  }
}

std::int64_t text_width(std::string_view text, std::int64_t dot) {
  const auto letters = static_cast<std::int64_t>(text.size());
  return letters == 0 ? 0 : (letters * (letter_width + 1) - 1) * dot;
}

}  // namespace reprise::train
