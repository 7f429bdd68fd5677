// Listens to fault points and landmarks on this thread: takes the rare ways that a test chooses,
// and counts what was reached.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "reprise/base/fault_points.hpp"

namespace reprise::test {

class listening final : public fault_listener {
 public:
  explicit listening(std::set<std::string, std::less<>> taken = {})
      : taken_{std::move(taken)}, before_{std::exchange(listens_to_faults, this)} {}
  ~listening() override { listens_to_faults = before_; }
  listening(const listening&) = delete;
  listening& operator=(const listening&) = delete;

  bool takes(std::string_view point) override { return taken_.contains(point); }
  void reached(std::string_view landmark) override { ++reached_[std::string{landmark}]; }

  // How often.
  std::size_t operator[](std::string_view landmark) const {
    const auto found = reached_.find(landmark);
    return found == reached_.end() ? 0 : found->second;
  }

 private:
  std::set<std::string, std::less<>> taken_;
  std::map<std::string, std::size_t, std::less<>> reached_;
  fault_listener* before_;
};

}  // namespace reprise::test
