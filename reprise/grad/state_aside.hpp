// What an op declares that it writes, kept as it is while a forward is run again for its backward:
// state, and overwrites too, which a later forward has written since.
//
// Copied aside ahead of the run and put back behind it, in stream order, also when the run throws.
// For this room's .cpp files.
#pragma once

#include <exception>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

class state_aside {
 public:
  // Does nothing unless `keeps`.
  state_aside(bool keeps, const signature& declared, pool& copies, site at) : at_{at} {
    if (!keeps || REPRISE_MUTANT(state_moves_when_a_forward_runs_again)) return;
    for (const declared_write& write : declared.writes()) {
      if (write.where.bytes() == 0) continue;
      block copied{copies, write.where.bytes(), at.stream, at.place};
      copy_bytes(at, write.where.data, copied.data(), copied.bytes());
      kept_.push_back({write.where, std::move(copied)});
    }
  }
  ~state_aside() {
    if (kept_.empty()) return;
    try {
      put_back();
    } catch (const error& failed) {
      try_again(failed);
    }
  }
  state_aside(const state_aside&) = delete;
  state_aside& operator=(const state_aside&) = delete;

  // The run stays: what it wrote is not put back.
  void let_go() noexcept { kept_.clear(); }
  // When a copy fails, a second call goes on where the first one stopped.
  void put_back() {
    while (!kept_.empty()) {
      const kept& last = kept_.back();
      copy_bytes(at_, last.copy.data(), last.where.data, last.copy.bytes());
      kept_.pop_back();
    }
  }

 private:
  struct kept {
    tensor_ref where;
    block copy;
  };

  void try_again(const error& failed) noexcept {
    try {
      put_back();
    } catch (const error&) {
      report_error(failed.what());
    }
  }

  site at_;
  std::vector<kept> kept_;
};

}  // namespace reprise
