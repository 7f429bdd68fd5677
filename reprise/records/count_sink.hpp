// A sink that keeps nothing and counts: to measure taps without a disk, and to see what they send.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "reprise/records/record_sink.hpp"

namespace reprise {

struct record_tally {
  std::uint64_t records = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;

  bool operator==(const record_tally&) const = default;
};

// What a count sink has seen, by point. Safe to read from any thread while records come in.
class record_tallies {
 public:
  void add(const tap_record& record);
  std::map<std::string, record_tally> by_point() const;
  record_tally all() const;

 private:
  mutable std::mutex guard_;
  std::map<std::string, record_tally> by_point_;
};

// Writes one line to the log when it closes; `into` (may be null) holds the counts.
std::unique_ptr<record_sink> count_sink(std::shared_ptr<record_tallies> into = nullptr);

}  // namespace reprise
