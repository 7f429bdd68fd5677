#include "reprise/device/slab_store.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/device.hpp"

namespace reprise {

namespace {

// Small recordings should not hold megabytes; large slabs should match the driver's 2 MiB pages.
std::size_t slab_size(std::size_t bytes) {
  constexpr std::size_t small = std::size_t{64} << 10;
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t granule = bytes < page ? small : page;
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace

slab_store::~slab_store() {
  trim();
}

slab slab_store::lease(std::size_t bytes, std::source_location from) {
  if (!fault_point("slabs: settled late")) settle();
  const std::size_t wanted = slab_size(bytes);
  if (!fault_point("slabs: an idle one is not lent")) {
    const std::lock_guard lock{guard_};
    // An idle slab is used when at most half of it would be wasted.
    if (const auto fit = idle_.lower_bound(wanted);
        fit != idle_.end() && (fit->first <= 2 * wanted || REPRISE_MUTANT(idle_slabs_are_wasted))) {
      const slab found{fit->second, fit->first};
      idle_.erase(fit);
      idle_bytes_ -= found.bytes;
      leased_ += found.bytes;
      return found;
    }
  }
  std::byte* begin = nullptr;
  try {
    begin = owner_.api->allocate(memory_kind::device, wanted, from);
  } catch (const out_of_memory&) {
    if (owner_.open_captures != 0 && !REPRISE_MUTANT(memory_is_freed_inside_a_capture)) throw;
    settle();
    if (idle_bytes() == 0) throw;
    landmark("slabs: out of memory, then trimmed");
    trim();
    begin = owner_.api->allocate(memory_kind::device, wanted, from);
  }
  const std::lock_guard lock{guard_};
  leased_ += wanted;
  return {begin, wanted};
}

void slab_store::give_back(slab returned) noexcept {
  const std::lock_guard lock{guard_};
  leased_ -= returned.bytes;
  idle_bytes_ += returned.bytes;
  idle_.emplace(returned.bytes, returned.begin);
}

void slab_store::retire(retired_slabs gone) noexcept {
  for (int tries = 0; tries < 2; ++tries) {
    try {
      if (REPRISE_MUTANT(slabs_come_back_while_work_runs) || owner_.wait_for(gone.streams)) {
        for (const slab& s : gone.slabs) give_back(s);
        return;
      }
      const std::lock_guard lock{guard_};
      for (const slab& s : gone.slabs) leased_ -= s.bytes;
      put_off_.push_back(std::move(gone));
      landmark("slabs: put off");
      return;
    } catch (const error& failure) {
      report_error(failure.what());
    }
  }
  report_error(
      fmt::format("pool '{}': {} slabs are kept until the process ends, because their "
                  "streams cannot be waited for",
                  gone.pool, gone.slabs.size()));
}

void slab_store::settle() noexcept {
  if (owner_.open_captures != 0) return;
  std::vector<retired_slabs> due;
  {
    const std::lock_guard lock{guard_};
    if (put_off_.empty()) return;
    due.swap(put_off_);
    for (const retired_slabs& gone : due) {
      for (const slab& s : gone.slabs) leased_ += s.bytes;
    }
  }
  for (retired_slabs& gone : due) retire(std::move(gone));
}

void slab_store::trim() noexcept {
  settle();
  std::multimap<std::size_t, std::byte*> doomed;
  {
    const std::lock_guard lock{guard_};
    doomed.swap(idle_);
    idle_bytes_ = 0;
  }
  for (const auto& [bytes, begin] : doomed) owner_.api->release(memory_kind::device, begin);
}

std::size_t slab_store::leased_bytes() const {
  const std::lock_guard lock{guard_};
  return leased_;
}

std::size_t slab_store::idle_bytes() const {
  const std::lock_guard lock{guard_};
  return idle_bytes_;
}

}  // namespace reprise
