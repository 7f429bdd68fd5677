// The counter behind random numbers in steps: owned by the host, so that eager runs and replays go
// on with one sequence.
//
// A step that draws names its counter (signature::random). Each run takes {seed, next} into a word
// of its own memory before its body's works read it, and moves the counter on by what it drew; a
// replay does the same without running the body. One thread at a time; outlives the steps.
#pragma once

#include <array>
#include <cstdint>

namespace reprise {

class philox_counter {
 public:
  explicit philox_counter(std::uint64_t seed, std::uint64_t next = 0) : seed_{seed}, next_{next} {}

  std::uint64_t seed() const noexcept { return seed_; }
  std::uint64_t next() const noexcept { return next_; }
  // To save and restore a sequence, or to begin another.
  void set(std::uint64_t seed, std::uint64_t next) noexcept {
    seed_ = seed;
    next_ = next;
  }
  void advance(std::uint64_t draws) noexcept { next_ += draws; }

  // As kernels read it: key, then the first counter of a run.
  std::array<std::uint64_t, 2> words() const noexcept { return {seed_, next_}; }

 private:
  std::uint64_t seed_;
  std::uint64_t next_;
};

}  // namespace reprise
