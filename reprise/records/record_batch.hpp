// Records that own their bytes: what waits in queues, shared by all the sinks that wait for it.
//
// Made by whoever hands records over, and never changed: safe to read from any thread. One
// allocation for all bytes; each record's begin at a multiple of 16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/records/tap_record.hpp"

namespace reprise {

class record_batch {
 public:
  // Copies. Throws usage_error when a record is not what tap_record.hpp says.
  explicit record_batch(std::span<const tap_record> records);
  record_batch(const record_batch&) = delete;
  record_batch& operator=(const record_batch&) = delete;

  std::span<const tap_record> records() const noexcept { return records_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;  // not zeroed first: all but the gaps is written
  std::vector<std::int64_t> sizes_;
  std::string kinds_;
  std::vector<tap_record> records_;  // into the three above
};

}  // namespace reprise
