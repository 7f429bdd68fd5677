// The seed's choices: the same numbers on every machine (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014: SplitMix64).
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::sim {

class dice {
 public:
  explicit dice(std::uint64_t seed) : state_{seed} {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Of [0, count); the bias of the remainder is below 2^-40 for what is chosen among here.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }
  // True in `part` of 256 cases.
  bool chance(unsigned part) { return (next() & 0xff) < part; }

 private:
  std::uint64_t state_;
};

}  // namespace reprise::sim
