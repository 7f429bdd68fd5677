#include "reprise/formats/idx.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "reprise/base/mutant.hpp"
#include "reprise/formats/mapped_file.hpp"
#include "reprise/formats/refusal.hpp"

namespace reprise {

namespace {

using formats::copy_again;
using formats::refuse;
using formats::write_again;

constexpr std::uint8_t unsigned_bytes = 0x08;
constexpr std::size_t most_dimensions = 6;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

// The bytes of a file from its start on, unpacked where gzip packed them.
class plain_bytes {
 public:
  plain_bytes(std::span<const std::byte> bytes, std::string_view) : left_{bytes} {}

  // As many as there are, up to `to.size()`.
  std::size_t take(std::span<std::uint8_t> to) {
    const std::size_t count = std::min(to.size(), left_.size());
    if (count != 0) std::memcpy(to.data(), left_.data(), count);
    left_ = left_.subspan(count);
    return count;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

class packed_bytes {
 public:
  packed_bytes(std::span<const std::byte> bytes, std::string_view file) : file_{file} {
    if (bytes.size() > std::numeric_limits<uInt>::max()) {
      refuse(file_, "the packed file is 4 GiB or larger", "check that this is an idx file");
    }
    // zlib's interface is older than const; inflate does not write its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    constexpr int largest_window = 15;
    constexpr int gzip_only = 16;
    if (inflateInit2(&stream_, largest_window + gzip_only) != Z_OK) {
      refuse(file_, "zlib could not begin to unpack it", "free some memory");
    }
  }
  ~packed_bytes() { inflateEnd(&stream_); }
  packed_bytes(const packed_bytes&) = delete;
  packed_bytes& operator=(const packed_bytes&) = delete;

  std::size_t take(std::span<std::uint8_t> to) {
    stream_.next_out = to.data();
    stream_.avail_out = static_cast<uInt>(to.size());
    while (stream_.avail_out != 0 && !ended_) {
      const int state = inflate(&stream_, Z_NO_FLUSH);
      if (state == Z_STREAM_END) {
        ended_ = true;
      } else if (state == Z_BUF_ERROR) {
        refuse(file_, "the gzip stream ends too early", copy_again);
      } else if (state != Z_OK) {
        refuse(file_, "the gzip stream is damaged", copy_again);
      }
    }
    return to.size() - stream_.avail_out;
  }

  // Whether the stream is over, its checksum is right and nothing follows it.
  bool at_end() {
    std::uint8_t more = 0;
    if (take({&more, 1}) != 0) return false;
    return stream_.avail_in == 0;
  }

 private:
  std::string_view file_;
  z_stream stream_{};
  bool ended_ = false;
};

template <class Source>
void take_all(Source& from, std::span<std::uint8_t> to, std::string_view file) {
  if (from.take(to) == to.size()) return;
  refuse(file, "the file ends inside its header", copy_again);
}

template <class Source>
std::vector<std::int64_t> read_shape(Source& from, std::string_view file) {
  std::uint8_t magic[4];
  take_all(from, magic, file);
  if (magic[0] != 0 || magic[1] != 0) {
    refuse(file, "this is no idx file: its first two bytes are not zero", "check the path");
  }
  if (magic[2] != unsigned_bytes) {
    refuse(
        file,
        fmt::format("elements of type 0x{:02x} are not built, unsigned bytes (0x08) are", magic[2]),
        "write its elements as unsigned bytes");
  }
  if (magic[3] == 0 || magic[3] > most_dimensions) {
    refuse(file, fmt::format("it has {} dimensions, 1 to {} are built", magic[3], most_dimensions),
           write_again);
  }
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 1;
  for (std::uint8_t axis = 0; axis < magic[3]; ++axis) {
    std::uint8_t size[4];
    take_all(from, size, file);
    const std::uint32_t extent = std::uint32_t{size[0]} << 24 | std::uint32_t{size[1]} << 16 |
                                 std::uint32_t{size[2]} << 8 | size[3];
    // Each factor is below 2^32 and the product so far at most 2^28, or it is already zero.
    elements *= extent;
    if (elements > max_idx_elements) {
      refuse(file, fmt::format("its header promises more than {} elements", max_idx_elements),
             "check that this is an idx file");
    }
    shape.push_back(extent);
  }
  return shape;
}

template <class Source>
idx_array read_from(Source&& from, std::string_view file) {
  idx_array array{read_shape(from, file), {}};
  std::size_t count = 1;
  for (const std::int64_t extent : array.shape) count *= static_cast<std::size_t>(extent);
  while (array.elements.size() < count) {
    const std::size_t had = array.elements.size();
    const std::size_t want = std::min(chunk_bytes, count - had);
    array.elements.resize(had + want);
    const std::size_t got = from.take(std::span{array.elements}.subspan(had));
    if (got == want) continue;
    refuse(file, fmt::format("it ends after {} of {} elements", had + got, count), copy_again);
  }
  if (!from.at_end() && !REPRISE_MUTANT(idx_ends_where_its_shape_does)) {
    refuse(file, fmt::format("bytes follow the {} elements that its header names", count),
           write_again);
  }
  return array;
}

bool is_packed(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

idx_array parse_idx(std::span<const std::byte> bytes, std::string_view file_name) {
  if (is_packed(bytes)) return read_from(packed_bytes{bytes, file_name}, file_name);
  return read_from(plain_bytes{bytes, file_name}, file_name);
}

idx_array read_idx(const std::filesystem::path& path) {
  const formats::mapped_file file{path};
  return parse_idx(file.bytes(), path.native());
}

}  // namespace reprise
