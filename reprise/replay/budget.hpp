// A bound on what recordings hold: pools, workspaces, pinned slots and an estimate of the driver's
// memory for executables.
//
// Caches share it and charge what they keep before they take it, so that `held` never passes the
// limit. What eager runs use is outside. A share may outlive the budget that it was charged to.
// Thread safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>

namespace reprise {

class byte_budget {
 public:
  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  explicit byte_budget(std::size_t limit) : account_{std::make_shared<account>(limit)} {}
  byte_budget(const byte_budget&) = delete;
  byte_budget& operator=(const byte_budget&) = delete;

  std::size_t limit() const noexcept { return account_->limit; }
  std::size_t held() const noexcept { return account_->held; }
  std::size_t most_held() const noexcept { return account_->most; }
  std::size_t free() const noexcept { return limit() - held(); }

  // False: it does not fit, and nothing was charged.
  bool charge(std::size_t bytes) noexcept { return account_->charge(bytes); }
  void give_back(std::size_t bytes) noexcept { account_->held -= bytes; }

 private:
  friend class budget_share;
  struct account {
    explicit account(std::size_t most_bytes) : limit{most_bytes} {}
    bool charge(std::size_t bytes) noexcept;

    const std::size_t limit;
    std::atomic<std::size_t> held{0};
    std::atomic<std::size_t> most{0};
  };

  std::shared_ptr<account> account_;
};

// What one owner has charged; given back when it goes.
class budget_share {
 public:
  explicit budget_share(byte_budget& of) : of_{of.account_} {}
  budget_share(budget_share&& other) noexcept;
  budget_share& operator=(budget_share&& other) noexcept;
  ~budget_share() { give_back(); }

  // To hold `bytes` in all, more or less than before. False: it does not fit, nothing changed.
  bool become(std::size_t bytes) noexcept;
  void give_back() noexcept { become(0); }
  std::size_t bytes() const noexcept { return bytes_; }
  bool is_of(const byte_budget& budget) const noexcept { return of_ == budget.account_; }

 private:
  std::shared_ptr<byte_budget::account> of_;
  std::size_t bytes_ = 0;
};

}  // namespace reprise
