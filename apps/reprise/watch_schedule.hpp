// `--schedule '0=none;8=resid_pre:2-3;16=none'`: which of the watched points are on from which
// decode step on. Ahead of the first entry all of them are.
//
// A value; constant once made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tap/point_set.hpp"

namespace reprise::app {

class watch_schedule {
 public:
  // All that is watched, at every step.
  watch_schedule() = default;
  // Throws usage_error, one line that names the entry, where it is none, or is not behind the one
  // before it.
  explicit watch_schedule(std::string_view text);

  // Throws usage_error where a part names no point of `known`, as --watch does, or a layer that is
  // not watched, of the model or not. A part that names no layers means those that are watched.
  void check(const std::vector<point>& known, const point_set& watched) const;

  // What is on in that decode step; the same address as long as it is the same set.
  const point_set& at(std::uint64_t decode_step) const;
  const point_set& all() const { return all_; }

 private:
  struct entry {
    std::uint64_t from;
    point_set set;
  };

  static void check(const entry& of, std::string_view part, const std::vector<point>& known,
                    const point_set& watched);

  point_set all_ = point_set::all();
  std::vector<entry> entries_;  // ascending
};

// What is said of a name that is none of these.
std::string no_point_of_a_model_with(const std::vector<point>& known);

}  // namespace reprise::app
