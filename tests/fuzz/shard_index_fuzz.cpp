// Any text as the index of a sharded model: it is refused with one line, or every shard is a plain
// file name.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/base/error.hpp"
#include "reprise/formats/shard_index.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using reprise::fuzz::require;
  constexpr std::string_view file_name = "fuzz.index.json";
  try {
    const auto shards =
        reprise::parse_shard_index({reinterpret_cast<const char*>(data), size}, file_name);
    require(!shards.empty(), "an index maps something");
    for (const auto& [tensor, shard] : shards) {
      require(!shard.empty() && shard != "." && shard != "..", "a shard is a file");
      require(shard.find_first_of(std::string_view{"/\\\n\0", 4}) == std::string::npos,
              "a shard is in the folder");
    }
  } catch (const reprise::usage_error& refused) {
    reprise::fuzz::require_one_line(refused.what(), file_name);
  }
  return 0;
}
