// Which points of a model: "none", "*", or "resid_pre:0-3+7,logits:*", as the command line and
// monitors take it.
//
//   SET    = none | * | part {, part}
//   part   = kind [: layers]          a kind alone is all of its layers
//   layers = * | range {+ range}      range = 3 | 3-8
//
// A value; constant once made.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/replay/marks.hpp"

namespace reprise {

class point_set {
 public:
  static constexpr int most_layers = 65'536;

  // Throws usage_error, one line that names the set and the part that is wrong.
  point_set(std::string_view text);
  point_set(const char* text) : point_set{std::string_view{text}} {}
  static point_set none() { return "none"; }
  static point_set all() { return "*"; }

  bool contains(const point& where) const;
  bool empty() const { return !all_ && parts_.empty(); }
  const std::string& text() const { return text_; }
  // The first part that names no point of these, as it was written; empty: each names one.
  std::string unmatched(const std::vector<point>& known) const;

 private:
  struct part {
    std::string kind;
    std::vector<std::pair<int, int>> layers;  // first and last; none: all
    std::string text;
    bool contains(const point& where) const;
  };

  std::pair<int, int> range_of(std::string_view text) const;
  part part_of(std::string_view text) const;

  std::string text_;
  bool all_ = false;
  std::vector<part> parts_;
};

}  // namespace reprise
