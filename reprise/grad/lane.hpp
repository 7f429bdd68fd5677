// What the graphed ops of one device and stream share: the pool of their frames, the memory of
// eager runs, and the order of all work there.
//
// Threads take turns on a lane, and different lanes run in parallel. Work that comes on another
// stream waits for the lane's queued work, and the lane's next work for it. For this room's .cpp
// files.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reprise/base/mutex.hpp"
#include "reprise/grad/frame.hpp"
#include "reprise/replay/eager.hpp"
#include "reprise/replay/recorder.hpp"
#include "reprise/replay/stream_order.hpp"

namespace reprise {

class lane {
 public:
  // The lane of this stream; made at the first call.
  static std::shared_ptr<lane> of(stream_ref stream);

  explicit lane(stream_ref stream);
  ~lane();
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  // Held for a whole call. All below is under it, but for `bury`.
  mutex turn;

  // Work enqueued on the stream of `at` from here on comes behind all of the lane's.
  void enter(site at) { order_.enter(at.stream, at.place); }
  eager_runner& eager() { return eager_; }
  recorder& captures() { return recorder_; }
  pool& results() { return results_; }

  // Memory outside of all frames, in the order of the stream.
  block own_block(std::size_t bytes, site at) {
    return bytes == 0 ? block{} : block{results_, bytes, at.stream, at.place};
  }

  // For a frame that is captured now: the shared one of the budget, until its first backward.
  std::shared_ptr<frame_memory> memory_for_a_frame(byte_budget& budget);
  // The next frame begins a new shared pool; and regions new slots.
  void start_over() {
    shared_.clear();
    groups_.clear();
  }
  // The same for one pool that is gone.
  void forget(const frame_memory& gone) {
    std::erase_if(shared_, [&](const auto& one) { return one.get() == &gone; });
  }

  // One zero: the rule `write` of deliveries in eager runs.
  view<const std::int32_t> zero(site at);

  // Slots of ops that say to do the same work, by work and key.
  struct group {
    std::uint64_t id;    // no two of a process have the same, nor one that is gone
    signature declared;  // as all of them declare
    std::vector<std::weak_ptr<frame>> slots{};
  };
  using group_key = std::tuple<std::string, bool, std::uint64_t>;  // work, moves gradients, key
  group* find_group(const group_key& key);
  group& make_group(const group_key& key, const signature& declared);

  // What a dead frame leaves: from any thread, without the turn.
  struct remains {
    std::shared_ptr<frame_memory> memory;
    std::span<std::byte> kept;
    std::vector<recording> recordings;
    std::vector<block> blocks;
    budget_share share;
  };
  void bury(remains one);
  // Lets go of what is done, and waits for nothing.
  void reap(std::source_location place);
  // The host waits for all work, and lets go of everything dead.
  void drain(std::source_location place);

  std::size_t unreaped() const { return retired_.size(); }

 private:
  void take_the_dead(std::source_location place);
  bool is_captured(const remains& one) const;
  void retire(remains& one, std::source_location place) noexcept;

  device_ref device_;
  stream_id stream_;
  stream_order order_;
  pool results_;
  eager_runner eager_;
  recorder recorder_;
  std::vector<std::shared_ptr<frame_memory>> shared_;  // one for each budget
  std::map<group_key, group> groups_;
  std::optional<buffer<std::int32_t>> zero_;

  std::mutex dead_guard_;
  std::vector<remains> dead_;
  std::atomic<bool> has_dead_{false};
  std::vector<remains> retired_;  // dead, and their last replay may still run
};

}  // namespace reprise
