// Writes the journal of a run, and remembers which findings nobody has been told of yet.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "reprise/sim/journal.hpp"

namespace reprise::sim {

class notebook {
 public:
  explicit notebook(std::shared_ptr<journal> into);

  const journal& so_far() const { return *into_; }
  void add(std::string line);  // to the trace
  void add(timeline_row row);
  void count_operation() { ++into_->operations; }
  void reached(std::string_view landmark);

  // Once for each text.
  void found(finding_kind kind, std::string text);
  // The first finding that was not taken yet; empty: none. It is taken then.
  std::string take_finding();

 private:
  // A run of millions of calls is not for reading.
  static constexpr std::size_t most_lines = 100'000;

  std::shared_ptr<journal> into_;
  std::set<std::string, std::less<>> told_;
  std::size_t taken_ = 0;
};

}  // namespace reprise::sim
