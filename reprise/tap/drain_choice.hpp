// Which way rounds of the drain leave the card: by copy engine or by a kernel, whichever was faster
// for rounds of that size.
//
// Each way is tried twice for a size before it is compared, and the slower one again every 256th
// round, since what is faster changes with what the model does. Rates are of the last rounds, newer
// ones counting more. One thread at a time; a value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/tap/monitor_options.hpp"

namespace reprise {

class drain_choice {
 public:
  static constexpr int tries = 2;
  static constexpr std::uint64_t rounds_between_trials = 256;

  // measured: as above; else always that way.
  explicit drain_choice(drain_way how) : how_{how} {}

  // Copy engine or kernel, for a round of so many bytes.
  drain_way next(std::uint64_t bytes);
  // A round took so long on the device; where nobody knows, it is not said.
  void took(drain_way way, std::uint64_t bytes, double us);

 private:
  struct record {
    int tried = 0;
    double bytes_per_us = 0;  // 0: not known
  };
  struct of_size {
    std::uint64_t rounds = 0;
    record engine, kernel;
  };

  of_size& sizes_like(std::uint64_t bytes);

  drain_way how_;
  std::array<of_size, 8> sizes_;  // each four times as large as the one before
};

}  // namespace reprise
