// Philox4x32-10: random words as a function of (key, counter), with no state (Salmon, Moraes, Dror
// and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Host and device, the same
// words.
#pragma once

#include <cstdint>

#include "reprise/base/portable.hpp"

namespace reprise::REPRISE_BODIES::ops {

struct philox_words {
  std::uint32_t at[4];
};

inline constexpr int philox_rounds = 10;

// The two halves of the key, which move from round to round.
struct philox_keys {
  std::uint32_t at[2];

  REPRISE_HD explicit philox_keys(std::uint64_t key)
      : at{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)} {}
  REPRISE_HD void next() {
    at[0] += 0x9e3779b9u;
    at[1] += 0xbb67ae85u;
  }
};

REPRISE_HD inline void philox_round(philox_words& x, const philox_keys& keys) {
  const std::uint64_t product0 = std::uint64_t{0xd2511f53u} * x.at[0];
  const std::uint64_t product1 = std::uint64_t{0xcd9e8d57u} * x.at[2];
  x = {{static_cast<std::uint32_t>(product1 >> 32) ^ x.at[1] ^ keys.at[0],
        static_cast<std::uint32_t>(product1),
        static_cast<std::uint32_t>(product0 >> 32) ^ x.at[3] ^ keys.at[1],
        static_cast<std::uint32_t>(product0)}};
}

// The counter's low half, then its high half.
REPRISE_HD inline philox_words philox(std::uint64_t key, std::uint64_t counter_low,
                                      std::uint64_t counter_high) {
  philox_words x{
      {static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
       static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)}};
  philox_keys keys{key};
  for (int round = 0; round < philox_rounds; ++round) {
    philox_round(x, keys);
    keys.next();
  }
  return x;
}

}  // namespace reprise::REPRISE_BODIES::ops
