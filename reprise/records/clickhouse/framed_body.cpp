#include "reprise/records/clickhouse/framed_body.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "reprise/base/error.hpp"

namespace reprise::records {

std::string framed_body(std::string_view body) {
  constexpr int gzip_window = 15 + 16;  // zlib's way to say gzip
  z_stream stream{};
  if (deflateInit2(&stream, Z_NO_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw error{"zlib: a frame for an insert needs memory; there is none"};
  }
  std::string framed;
  std::string part(std::size_t{1} << 18, '\0');
  int done = Z_OK;
  while (done == Z_OK) {
    if (stream.avail_in == 0) {
      // zlib counts in 32 bits.
      const std::size_t piece =
          std::min<std::size_t>(body.size(), std::numeric_limits<uInt>::max() / 2);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
      stream.avail_in = static_cast<uInt>(piece);
      body.remove_prefix(piece);
    }
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    done = deflate(&stream, body.empty() ? Z_FINISH : Z_NO_FLUSH);
    framed.append(part, 0, part.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  if (done != Z_STREAM_END) throw error{"zlib: a frame for an insert could not be made"};
  return framed;
}

}  // namespace reprise::records
