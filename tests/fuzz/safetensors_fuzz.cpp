// Any bytes as a safetensors file: they are refused with one line, or every tensor is sound.
//
// Each input is read twice: as the file it is; and as the text of a header alone, with a true
// length before it and as much data behind it as the first eight bytes say. The second reading
// lets the fuzzer change the text without having to mend the length, and reaches offsets far
// beyond what fits in an input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/safetensors_header.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using reprise::fuzz::require;
constexpr std::string_view file_name = "fuzz.safetensors";

// Elements times their size, in arithmetic that cannot wrap.
unsigned __int128 bytes_needed(const reprise::safetensors_entry& tensor) {
  unsigned __int128 bytes = size_of(tensor.type);
  for (const std::int64_t size : tensor.shape) {
    require(size >= 0, "no size is negative");
    if (size == 0) return 0;
  }
  for (const std::int64_t size : tensor.shape) {
    bytes *= static_cast<std::uint64_t>(size);
    require(bytes <= std::numeric_limits<std::int64_t>::max(), "a tensor's bytes fit an int64");
  }
  return bytes;
}

void require_sound(const reprise::safetensors_header& header, std::uint64_t data_begin,
                   std::uint64_t file_bytes) {
  std::set<std::string_view> names;
  std::uint64_t covered = data_begin;
  for (const reprise::safetensors_entry& tensor : header.tensors) {
    require(names.insert(tensor.name).second, "no two tensors have one name");
    require(reprise::formats::well_formed_bytes(tensor.name) == tensor.name.size(),
            "names are UTF-8");
    require(tensor.shape.size() <= reprise::max_safetensors_rank, "the rank has a limit");
    require(tensor.begin == covered, "tensors follow one another without overlap or hole");
    require(tensor.begin <= tensor.end && tensor.end <= file_bytes, "tensors are in the file");
    require(tensor.end - tensor.begin == bytes_needed(tensor), "bytes are elements times size");
    covered = tensor.end;
  }
  require(covered == file_bytes, "nothing is left after the last tensor");
}

// The first eight bytes, little endian.
std::uint64_t first_number(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::size_t at = 8; at-- > 0;) number = number << 8 | static_cast<std::uint64_t>(bytes[at]);
  return number;
}

void read(std::span<const std::byte> start, std::uint64_t file_bytes) {
  try {
    const reprise::safetensors_header header =
        reprise::parse_safetensors_header(start, file_bytes, file_name);
    require_sound(header, 8 + first_number(start), file_bytes);
  } catch (const reprise::usage_error& refused) {
    reprise::fuzz::require_one_line(refused.what(), file_name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span{data, size});
  read(input, size);
  if (size < 8) return 0;

  const std::uint64_t header_bytes = size - 8;
  std::vector<std::byte> start{input.begin(), input.end()};
  for (std::size_t at = 0; at < 8; ++at) {
    start[at] = static_cast<std::byte>(header_bytes >> (8 * at) & 0xffu);
  }
  // No file is longer than a length can say.
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - size;
  const std::uint64_t data_bytes = std::min(first_number(input), room);
  read(start, size + data_bytes);
  return 0;
}
