// Text that came from a file or a command line, made fit for one line on a terminal.
//
// Error lines quote names that somebody else chose: a line break in one would forge a second line,
// an escape sequence would colour the terminal, a direction mark would reorder what is read.
// Pure functions, safe from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::formats {

// How many bytes of `text` are well-formed UTF-8, counted from its start: text.size() when all are.
std::size_t well_formed_bytes(std::string_view text) noexcept;

// `text` with every character that could break, hide or reorder the line, and every byte that is
// not UTF-8, written as \xNN; a backslash is doubled, so that two texts never print alike.
std::string printable(std::string_view text);

// A name between double quotes, printable; of a very long one the two ends and the length in bytes.
std::string quoted_name(std::string_view name);

}  // namespace reprise::formats
