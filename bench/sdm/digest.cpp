#include "bench/sdm/digest.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "reprise/device/enqueue.hpp"

namespace reprise::bench {

namespace {

// Read back in tiles: a bank may be larger than what the host wants to hold twice.
constexpr std::size_t tile_bytes = std::size_t{8} << 20;

}  // namespace

std::uint64_t digest_of(stream_ref stream, const tensor_ref& what, std::uint64_t so_far) {
  const std::size_t bytes = what.bytes();
  std::vector<std::byte> tile(std::min(bytes, tile_bytes));
  for (std::size_t begin = 0; begin < bytes; begin += tile_bytes) {
    const std::size_t count = std::min(tile_bytes, bytes - begin);
    copy_bytes(stream, what.data + begin, tile.data(), count);
    stream.synchronize();
    for (std::size_t i = 0; i < count; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, tile.data() + i, std::min(sizeof word, count - i));
      so_far = (so_far ^ word) * 0x9e3779b97f4a7c15U;  // odd, so that no bit is lost
      so_far ^= so_far >> 32;
    }
  }
  return so_far;
}

}  // namespace reprise::bench
