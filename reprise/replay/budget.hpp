// A bound on what recordings hold: pools, workspaces, pinned slots and an estimate of the driver's
// memory for executables.
//
// Caches share it and charge what they keep before they take it, so that `held` never passes the
// limit. What eager runs use is outside. Thread safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>

namespace reprise {

class byte_budget {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  explicit byte_budget(std::size_t limit) : limit_{limit} {}
  byte_budget(const byte_budget&) = delete;
  byte_budget& operator=(const byte_budget&) = delete;

  std::size_t limit() const noexcept { return limit_; }
  std::size_t held() const noexcept { return held_; }
  std::size_t most_held() const noexcept { return most_; }
  std::size_t free() const noexcept { return limit_ - held_; }

  // False: it does not fit, and nothing was charged.
  bool charge(std::size_t bytes) noexcept;
  void give_back(std::size_t bytes) noexcept { held_ -= bytes; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> most_{0};
};

// What one owner has charged; given back when it goes.
class budget_share {
 public:
  explicit budget_share(byte_budget& of) : of_{&of} {}
  budget_share(budget_share&& other) noexcept;
  budget_share& operator=(budget_share&& other) noexcept;
  ~budget_share() { give_back(); }

  // To hold `bytes` in all, more or less than before. False: it does not fit, nothing changed.
  bool become(std::size_t bytes) noexcept;
  void give_back() noexcept { become(0); }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  byte_budget* of_;
  std::size_t bytes_ = 0;
};

}  // namespace reprise
