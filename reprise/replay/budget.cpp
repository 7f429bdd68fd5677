#include "reprise/replay/budget.hpp"

#include <utility>

#include "reprise/base/mutant.hpp"

namespace reprise {

bool byte_budget::account::charge(std::size_t bytes) noexcept {
  std::size_t before = held;
  do {
    if (bytes > limit - before && !REPRISE_MUTANT(budget_is_not_asked)) return false;
  } while (!held.compare_exchange_weak(before, before + bytes));
  std::size_t known = most;
  while (known < before + bytes && !most.compare_exchange_weak(known, before + bytes)) {
  }
  return true;
}

budget_share::budget_share(budget_share&& other) noexcept
    : of_{other.of_}, bytes_{std::exchange(other.bytes_, 0)} {}

budget_share& budget_share::operator=(budget_share&& other) noexcept {
  std::swap(of_, other.of_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

bool budget_share::become(std::size_t bytes) noexcept {
  if (bytes > bytes_) {
    if (!of_->charge(bytes - bytes_)) return false;
  } else if (bytes < bytes_) {
    of_->held -= bytes_ - bytes;
  }
  bytes_ = bytes;
  return true;
}

}  // namespace reprise
