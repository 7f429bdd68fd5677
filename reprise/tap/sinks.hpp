// The sinks of a monitor: each record goes to all of them, and one that fails costs the others
// nothing. The queues of `records` take their place where that room is there. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/records/record_sink.hpp"

namespace reprise {

class sink_list {
 public:
  // Opens it; what that throws passes through, and nothing is kept.
  void add(std::unique_ptr<record_sink> sink, std::string_view run);
  void write(std::span<const tap_record> records);
  void flush();
  // Each once; what fails is counted.
  void close();

  std::size_t size() const { return sinks_.size(); }
  std::uint64_t failures() const { return failures_; }
  std::uint64_t lost() const { return lost_; }  // records that a sink did not take
  const std::string& first_failure() const { return first_failure_; }

 private:
  template <class Call>
  bool tried(Call&& call);

  std::vector<std::unique_ptr<record_sink>> sinks_;
  std::uint64_t failures_ = 0;
  std::uint64_t lost_ = 0;
  std::string first_failure_;
};

}  // namespace reprise
