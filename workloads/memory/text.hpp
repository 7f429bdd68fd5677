// The text that a run trains on, as bytes, and the batches that it draws from it.
//
// A batch is a function of the text, the seed and the micro-batch's number alone, drawn on the
// host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::memory {

// Throws usage_error, naming the file, where it cannot be read, is empty, or is shorter than
// `least` bytes.
std::string read_text(const std::filesystem::path& file, std::int64_t least);

// Streams of neighbouring bytes, one behind the other, and the byte that follows each.
struct byte_batch {
  std::vector<std::int32_t> bytes;    // [streams * length]
  std::vector<std::int32_t> targets;  // as many
};

struct batch_shape {
  std::int64_t streams;
  std::int64_t length;
};

// Each stream begins anywhere in the text, all places as likely; the text is longer than `length`.
byte_batch draw_batch(std::string_view text, std::uint64_t seed, std::uint64_t number,
                      const batch_shape& shape);

// Tokens are bytes.
std::int32_t token_of(char byte);
char byte_of(std::int32_t token);

}  // namespace reprise::memory
