#include "reprise/grad/scoped.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/grad/checkpoint.hpp"

namespace reprise {

namespace {

thread_local int suspensions = 0;
std::atomic<int> suspensions_everywhere{0};
thread_local int left_alone = 0;
thread_local region* innermost_region = nullptr;

}  // namespace

suspended::suspended() noexcept {
  ++suspensions;
}
suspended::~suspended() {
  --suspensions;
}
bool suspended::is_here() noexcept {
  return suspensions != 0 || suspensions_everywhere.load(std::memory_order_acquire) != 0;
}

suspended_everywhere::suspended_everywhere() noexcept {
  ++suspensions_everywhere;
}
suspended_everywhere::~suspended_everywhere() {
  --suspensions_everywhere;
}

state_left_alone::state_left_alone() noexcept {
  ++left_alone;
}
state_left_alone::~state_left_alone() {
  --left_alone;
}
bool state_left_alone::is_here() noexcept {
  return left_alone != 0;
}

void checkpoint::refuse(std::string_view has, std::string_view remedy) const {
  throw usage_error{fmt::format("checkpoint '{}': it {}; {}", label_, has, remedy)};
}

region::region(std::string label)
    : label_{std::move(label)}, outer_{std::exchange(innermost_region, this)} {}
region::~region() {
  innermost_region = outer_;
}
region* region::innermost() noexcept {
  return innermost_region;
}

std::size_t region::slot_for(std::uint64_t group, const void* op, std::optional<std::size_t> kept) {
  std::vector<const void*>& taken = taken_[group];
  const auto is_free = [&](std::size_t slot) {
    return slot >= taken.size() || taken[slot] == nullptr || taken[slot] == op;
  };
  std::size_t slot = 0;
  if (kept && is_free(*kept)) {
    slot = *kept;
  } else if (!REPRISE_MUTANT(ops_of_a_region_share_a_slot)) {
    while (!is_free(slot)) ++slot;
  }
  if (slot >= taken.size()) taken.resize(slot + 1);
  taken[slot] = op;
  return slot;
}

}  // namespace reprise
