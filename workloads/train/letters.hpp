// The letters of the class names as bitmaps, so that a picture can say what it shows.
#pragma once

#include <cstdint>
#include <string_view>

#include "reprise/formats/png.hpp"

namespace reprise::train {

inline constexpr std::int64_t letter_width = 5;
inline constexpr std::int64_t letter_height = 7;

// Whether there is a bitmap for it; small letters, '-' and ' ' have one where a class name uses
// them.
bool has_letter(char letter);

// Draws `text` with its upper left corner at (x, y): each dot a square of `dot` pixels of `grey`, a
// column of dots between letters. What has no bitmap, or would lie outside, is left out.
void draw_text(grey_picture& into, std::int64_t x, std::int64_t y, std::string_view text,
               std::int64_t dot, std::uint8_t grey);

// In pixels.
std::int64_t text_width(std::string_view text, std::int64_t dot);

}  // namespace reprise::train
