#include "workloads/memory/text.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <system_error>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/ops/philox.hpp"

namespace reprise::memory {

namespace {

// Apart from the blocks that parameters are drawn from under the same seed.
constexpr std::uint64_t of_batches = std::uint64_t{1} << 62;

std::uint64_t number_of(const ops::philox_words& words) {
  return std::uint64_t{words.at[1]} << 32 | words.at[0];
}

}  // namespace

std::string read_text(const std::filesystem::path& file, std::int64_t least) {
  const auto refuse = [&](std::string_view what) {
    throw usage_error{fmt::format("text {}: {}", formats::quoted_name(file.string()), what)};
  };
  std::error_code ignored;
  std::ifstream in{file, std::ios::binary};
  if (!in || std::filesystem::is_directory(file, ignored)) {
    refuse("the file cannot be read; give a text file");
  }
  if (!std::filesystem::is_regular_file(file, ignored)) {
    refuse("it is no regular file, so nobody knows how long it is; give a text file");
  }
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (in.bad()) refuse("the file cannot be read; give a text file");
  if (text.empty()) refuse("the file is empty; give one with text in it");
  if (text.size() < static_cast<std::size_t>(least)) {
    refuse(
        fmt::format("the file has {} bytes, and a stream and the byte behind it are {}; give a "
                    "longer one, or a shorter --context",
                    text.size(), least));
  }
  return text;
}

byte_batch draw_batch(std::string_view text, std::uint64_t seed, std::uint64_t number,
                      const batch_shape& shape) {
  const auto length = static_cast<std::size_t>(shape.length);
  const auto streams = static_cast<std::uint64_t>(shape.streams);
  byte_batch drawn;
  drawn.bytes.reserve(length * streams);
  drawn.targets.reserve(length * streams);
  for (std::uint64_t stream = 0; stream < streams; ++stream) {
    const ops::philox_words drawn_words = ops::philox(seed, number * streams + stream, of_batches);
    const std::size_t begin = number_of(drawn_words) % (text.size() - length);
    for (std::size_t i = begin; i < begin + length; ++i) {
      drawn.bytes.push_back(token_of(text[i]));
      drawn.targets.push_back(token_of(text[i + 1]));
    }
  }
  return drawn;
}

std::int32_t token_of(char byte) {
  return static_cast<unsigned char>(byte);
}

char byte_of(std::int32_t token) {
  return static_cast<char>(static_cast<unsigned char>(token));
}

}  // namespace reprise::memory
