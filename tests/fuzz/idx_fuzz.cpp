// Any bytes as an idx file, plain or packed: they are refused with one line, or there is an element
// for each that the shape says.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/base/error.hpp"
#include "reprise/formats/idx.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using reprise::fuzz::require;
  constexpr std::string_view file_name = "fuzz.idx";
  try {
    const reprise::idx_array array =
        reprise::parse_idx(std::as_bytes(std::span{data, size}), file_name);
    std::size_t count = 1;
    for (const std::int64_t extent : array.shape) {
      require(extent >= 0, "an extent is a size");
      count *= static_cast<std::size_t>(extent);
    }
    require(!array.shape.empty() && array.shape.size() <= 6, "there are one to six dimensions");
    require(array.elements.size() == count, "each element is there");
    require(count <= reprise::max_idx_elements, "it is bounded");
  } catch (const reprise::usage_error& refused) {
    reprise::fuzz::require_one_line(refused.what(), file_name);
  }
  return 0;
}
