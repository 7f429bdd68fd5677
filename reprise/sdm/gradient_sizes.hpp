// What the arrays of gradients.hpp hold: the checks that its CPU and its CUDA bodies begin with,
// and where an event's weight and gradient lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/device/view.hpp"
#include "reprise/sdm/extents.hpp"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES::sdm {

// An event of a chunk, taken apart.
struct event_place {
  std::int64_t token;  // in its chunk
  std::int64_t at;     // among the weights of all writes [P, T, W], or those of all reads [P, T, R]
  bool writes;
};

// `first_token`: the chunk's first, among those of all streams.
REPRISE_HD inline event_place place_of_event(const sdm_sizes& sizes, std::int64_t first_token,
                                             std::int32_t event) {
  const auto each = static_cast<std::uint32_t>(sizes.token_events());
  const std::uint32_t token = static_cast<std::uint32_t>(event) / each;
  const std::int64_t which = static_cast<std::uint32_t>(event) - token * each;
  const std::int64_t row = first_token + token;
  const bool writes = which < sizes.writes;
  return {token, writes ? row * sizes.writes + which : row * sizes.reads + (which - sizes.writes),
          writes};
}

template <class X>
void need_products(const sdm_sizes& s, const read<X>& dy, const read<X>& m, const read<X>& errors,
                   const read<X>& beta, const write<X>& of_readings, const write<X>& of_errors) {
  extents{"sdm_products", s}
      .by_token("dy", dy.size(), s.width)
      .by_token("m", m.size(), s.width)
      .by_token("errors", errors.size(), s.width)
      .by_token("beta", beta.size(), 1)
      .by_chunk("of_readings", of_readings.size(), s.chunk * s.chunk)
      .by_chunk("of_errors", of_errors.size(), s.chunk * s.chunk);
}

struct event_grads_elements {
  std::size_t order, place, runs, k_val, q_val, level, of_state, of_cotangent, of_both, of_readings,
      of_errors, dk, dq, dg_by_write;
};

inline void need_event_grads(const sdm_sizes& s, const event_grads_elements& in) {
  const std::int64_t parts = s.events() * parts_of(s.width);
  extents{"sdm_event_grads", s}
      .by_chunk("order", in.order, s.events())
      .by_chunk("place", in.place, s.events())
      .by_chunk("runs", in.runs, s.events() + 1)
      .by_token("k_val", in.k_val, s.writes)
      .by_token("q_val", in.q_val, s.reads)
      .by_chunk("level", in.level, s.events())
      .by_chunk("of_state", in.of_state, parts)
      .by_chunk("of_cotangent", in.of_cotangent, parts)
      .by_chunk("of_both", in.of_both, parts)
      .by_chunk("of_readings", in.of_readings, s.chunk * s.chunk)
      .by_chunk("of_errors", in.of_errors, s.chunk * s.chunk)
      .by_token("dk", in.dk, s.writes)
      .by_token("dq", in.dq, s.reads)
      .by_token("dg_by_write", in.dg_by_write, s.writes);
}

template <class X>
void need_token_grads(const sdm_sizes& s, const read<X>& m, const read<X>& errors,
                      const read<X>& beta, const read<X>& dg_by_write, const write<X>& dv,
                      const write<X>& dbeta, const write<X>& dg) {
  extents{"sdm_token_grads", s}
      .by_token("m", m.size(), s.width)
      .by_token("errors", errors.size(), s.width)
      .by_token("beta", beta.size(), 1)
      .by_token("dg_by_write", dg_by_write.size(), s.writes)
      .by_token("dv", dv.size(), s.width)
      .by_token("dbeta", dbeta.size(), 1)
      .by_token("dg", dg.size(), s.decays);
}

}  // namespace reprise::REPRISE_BODIES::sdm
