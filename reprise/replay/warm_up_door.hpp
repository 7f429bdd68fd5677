// The door of a warm-up: every write passes it before it is enqueued.
//
// A warm-up runs the body for real, and must leave no trace. So named state is copied aside just
// before its first write, memory of the run itself may be written freely, an overwrite is harmless
// by its declaration (but where no run of the same inputs follows: there it is copied aside too),
// and a write to anything else is refused by name.
#pragma once

#include <set>
#include <source_location>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/run_memory.hpp"
#include "reprise/replay/signature.hpp"
#include "reprise/replay/staging.hpp"

namespace reprise {

class warm_up_door {
 public:
  // Watches this thread while it lives. All references outlive it.
  warm_up_door(const signature& declared, const run_memory& own, pool& copies, site side,
               bool saves_overwrites);

  // Where this run finds its inputs: nothing may be written through the words of direct ones. Both
  // outlive the door.
  void know_inputs(const input_layout& layout, const std::byte* staged) {
    layout_ = &layout;
    staged_ = staged;
  }

  // Puts back all state that was written, in the order of the stream and behind the body's
  // branches, which a body that threw has not joined. When a copy fails, a second call goes on
  // where the first one stopped.
  void restore();

 private:
  struct saved {
    const declared_write* state;
    block copy;
  };

  void see(stream_ref stream, const work& what);
  void pass(const work& what, const access& touched);
  void save(const declared_write& state);
  void refuse_input(const work& what, const access& touched) const;

  const signature& declared_;
  const run_memory& own_;
  pool& copies_;
  stream_ref stream_;
  std::source_location place_;
  bool saves_overwrites_;
  const input_layout* layout_ = nullptr;
  const std::byte* staged_ = nullptr;
  std::set<stream_id> branches_;  // that the body has worked on
  std::vector<saved> saved_;
  bool ours_ = false;  // the copies that the door itself makes pass unseen
  submission_watch watch_;
};

}  // namespace reprise
