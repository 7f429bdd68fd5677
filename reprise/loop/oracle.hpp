// The loop oracle: where two runs of a loop part, by step and tap. The runs are those of two
// devices, or an eager and a recorded one; both are tapped in the same way (loop/taps.hpp).
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "reprise/kernel/parity.hpp"
#include "reprise/loop/taps.hpp"

namespace reprise {

struct divergence {
  std::size_t step = 0;                                    // counted from 0
  std::string name;                                        // of the step; empty where there is none
  std::string tap;                                         // empty when the steps themselves differ
  double error = std::numeric_limits<double>::infinity();  // of the worst element
  std::string what;

  // "step 3 'blend', tap 'y': element 7 is 0.5 away"
  std::string text() const;
};

// The first step, and in it the first tap, that is not the same in both; nothing when all are. A
// step or tap that one run lacks is a divergence, and so are two runs without one tap.
std::optional<divergence> first_divergence(std::span<const tapped_step> reference,
                                           std::span<const tapped_step> other,
                                           const parity_bound& within = {},
                                           nan_rule nans = nan_rule::differ);

}  // namespace reprise
