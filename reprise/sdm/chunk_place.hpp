// One chunk of a call as the kernels of a chunk see it: sizes.hpp with the divisions done, on the
// host, where its arrays lie, and what an event or an index of it is.
#pragma once

#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES::sdm {

struct chunk_place {
  std::int64_t streams, slots, width, tokens;
  std::int64_t chunks, number;  // of a stream, and which it is
  std::int64_t first;           // its first token
  std::int64_t events;          // places for events: of all chunks alike
  std::int64_t chunk;           // tokens of a whole one: the side of its matrices
  std::int32_t count;           // its own tokens
  std::int32_t writes, reads;

  chunk_place(const sdm_sizes& s, std::int64_t n)
      : streams{s.streams},
        slots{s.slots},
        width{s.width},
        tokens{s.tokens},
        chunks{s.chunks()},
        number{n},
        first{n * s.chunk},
        events{s.events()},
        chunk{s.chunk},
        count{static_cast<std::int32_t>(s.tokens_in(n))},
        writes{static_cast<std::int32_t>(s.writes)},
        reads{static_cast<std::int32_t>(s.reads)} {}

  // Which of the arrays [P, N, ...] is that of stream p; which of those [P, T, ...] its token t.
  REPRISE_HD std::int64_t of_stream(std::int64_t p) const { return p * chunks + number; }
  REPRISE_HD std::int64_t token(std::int64_t p, std::int32_t t) const {
    return p * tokens + first + t;
  }

  REPRISE_HD std::int32_t token_events() const { return writes + reads; }
  REPRISE_HD bool is_write(std::int32_t event) const { return event % token_events() < writes; }
  REPRISE_HD std::int32_t token_of(std::int32_t event) const { return event / token_events(); }

  REPRISE_HD bool is_row_of(std::int64_t p, std::int64_t row) const {
    return row >= p * slots && row < (p + 1) * slots;
  }

  // No stream has more runs in this chunk.
  std::int64_t most_runs() const {
    const std::int64_t here = std::int64_t{count} * token_events();
    return here < slots ? here : slots;
  }
};

}  // namespace reprise::REPRISE_BODIES::sdm
