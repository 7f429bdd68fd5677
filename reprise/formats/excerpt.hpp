// What an error line quotes of a text that somebody typed, however long that is.
//
// Pure functions, safe from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::formats {

// Of one option an error line quotes no more than this; half of it each, where it quotes two texts.
inline constexpr std::size_t most_quoted = 80;

// `text`, printable; where that has more than `most` characters, its two ends with ... between
// them, which are `most` characters. At least 5.
std::string excerpt(std::string_view text, std::size_t most = most_quoted);

}  // namespace reprise::formats
