// What the arrays of sdm_step hold: the check that its CPU and its CUDA body begin with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/error.hpp"
#include "reprise/device/view.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/sdm/extents.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES::sdm {

template <class B, class X>
void need_step(const sdm_sizes& s, const inout<B>& bank, const read<std::int32_t>& k_idx,
               const read<X>& k_val, const read<X>& v, const read<X>& beta, const read<X>& g,
               const read<std::int32_t>& q_idx, const read<X>& q_val, const write<X>& readings) {
  const extents need{"sdm_step", s};
  if (s.tokens != 1) throw usage_error{"sdm_step takes one token; give sizes with 1 token"};
  ops::need_elements("sdm_step", "the bank", bank.size(),
                     static_cast<std::size_t>(s.rows() * s.width));
  need.by_token("k_idx", k_idx.size(), s.writes)
      .by_token("k_val", k_val.size(), s.writes)
      .by_token("v", v.size(), s.width)
      .by_token("beta", beta.size(), 1)
      .by_token("g", g.size(), s.decays)
      .by_token("q_idx", q_idx.size(), s.reads)
      .by_token("q_val", q_val.size(), s.reads)
      .by_token("readings", readings.size(), s.width);
}

}  // namespace reprise::REPRISE_BODIES::sdm
