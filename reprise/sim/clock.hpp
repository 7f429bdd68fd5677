// Vector clocks: what comes before a work, by lanes.
//
// A lane is a row of works of which each comes before the next: a stream, or a chain of nodes in
// the launches of one executable. A work is a place in its lane; it comes after another if its
// clock has come as far on that one's lane (Fidge 1988, Mattern 1989).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::sim {

using lane_id = std::uint32_t;

// Where a work is. No work is at step 0.
struct lane_place {
  lane_id lane = 0;
  std::uint32_t step = 0;
};

class vector_clock {
 public:
  bool covers(const lane_place& place) const {
    return place.lane < steps_.size() && steps_[place.lane] >= place.step;
  }
  void advance_to(const lane_place& place) {
    if (steps_.size() <= place.lane) steps_.resize(place.lane + std::size_t{1}, 0);
    steps_[place.lane] = std::max(steps_[place.lane], place.step);
  }
  void join(const vector_clock& other) {
    if (steps_.size() < other.steps_.size()) steps_.resize(other.steps_.size(), 0);
    for (std::size_t i = 0; i < other.steps_.size(); ++i) {
      steps_[i] = std::max(steps_[i], other.steps_[i]);
    }
  }

 private:
  std::vector<std::uint32_t> steps_;
};

}  // namespace reprise::sim
