// What every part of `bench sdm` measures with, and the rounds that it is called in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "bench/measure/progress.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/budget.hpp"

namespace reprise::bench {

struct sdm_tools {
  pool& memory;
  stream_ref stream;
  byte_budget& budget;
  int rounds;
  bool gpu;             // whose figures are held to limits
  double bytes_per_us;  // of copies within the device
  const progress& tell;
};

inline constexpr int sdm_warm_up_rounds = 1;

// Calls every turn once a round, and another one first each time; what the first round took goes,
// by `begin`.
inline void in_rounds(const sdm_tools& with, std::string_view what,
                      const std::vector<std::function<void()>>& turns,
                      const std::function<void()>& begin) {
  const auto total = static_cast<std::size_t>(with.rounds);
  const std::size_t told_every = std::max<std::size_t>(1, total / 50);
  for (std::size_t i = 0; i < total + sdm_warm_up_rounds; ++i) {
    if (i == sdm_warm_up_rounds) begin();
    if (i >= sdm_warm_up_rounds && (i - sdm_warm_up_rounds) % told_every == 0) {
      with.tell(what, i - sdm_warm_up_rounds, total);
    }
    for (std::size_t t = 0; t < turns.size(); ++t) turns[(i + t) % turns.size()]();
  }
  with.tell(what, total, total);
}

}  // namespace reprise::bench
