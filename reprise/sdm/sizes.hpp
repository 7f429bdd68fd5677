// The sizes of a call of the sparse-delta-memory op, and how its kernels number things.
//
// P streams, each with a bank of S slots, rows of D numbers; T tokens; W writes and R reads per
// token, of the stream's own slots. Row p * S + s of the bank is slot s of stream p, and an index
// is such a row number; indices of one token ascend strictly. Tokens are taken in chunks of C
// neighbours; the last may be shorter. N chunks a stream.
//
// An event is one write or one read: event t * (W + R) + w of a chunk is write w of its token t,
// and t * (W + R) + W + n is read n, so that events in increasing order are in the order of time. A
// chunk has E = C * (W + R) of them. A run is a chunk's events on one slot, in the order of time.
//
// An index outside its stream's rows is the caller's mistake: such a read gives zeros and such a
// write is left out, and no memory outside the bank is touched. So is an index that a token names
// twice: what comes of it is not specified, but the same each time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/portable.hpp"

namespace reprise {

struct sdm_sizes {
  std::int64_t streams = 1;  // P
  std::int64_t slots = 1;    // S
  std::int64_t width = 1;    // D
  std::int64_t tokens = 0;   // T
  std::int64_t writes = 1;   // W
  std::int64_t reads = 1;    // R
  std::int64_t decays = 1;   // G: 1, a token's for all its writes; or W, one for each
  std::int64_t chunk = 64;   // C

  bool operator==(const sdm_sizes&) const = default;

  REPRISE_HD std::int64_t rows() const { return streams * slots; }
  REPRISE_HD std::int64_t chunks() const { return (tokens + chunk - 1) / chunk; }  // N
  REPRISE_HD std::int64_t token_events() const { return writes + reads; }
  REPRISE_HD std::int64_t events() const { return chunk * token_events(); }  // E
  REPRISE_HD std::int64_t tokens_in(std::int64_t n) const {
    const std::int64_t left = tokens - n * chunk;
    return left < chunk ? left : chunk;
  }
  // Where the arrays of chunk n of stream p begin: those of [P, N, E], [P, N, C, C] and so on.
  REPRISE_HD std::int64_t chunk_of(std::int64_t p, std::int64_t n) const {
    return p * chunks() + n;
  }
};

// The most events of a chunk: a block of CUDA sorts them in its shared memory.
inline constexpr std::int64_t most_sdm_events = 16384;

// Throws usage_error, naming the size and what would do, unless every size is at least 1 (tokens
// may be 0), decays is 1 or W, W and R are at most S, a chunk has at most most_sdm_events events,
// and P * S and P * T * (W + R) fit 31 bits.
void check_sizes(const sdm_sizes& sizes);

}  // namespace reprise
