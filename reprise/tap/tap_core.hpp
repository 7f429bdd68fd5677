// What a monitor, its observer and its recordings share: the ring, the flights, the drain, and what
// is watched. For this room's .cpp files.
//
// Steps under one monitor are run by one thread at a time, on any streams; the drain may have a
// thread of its own, and any thread may flush. `guard` is held for looking and counting only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "reprise/base/mutant.hpp"
#include "reprise/device/host_thread.hpp"
#include "reprise/replay/step.hpp"
#include "reprise/replay/stream_order.hpp"
#include "reprise/tap/drain.hpp"

namespace reprise {

// Room that was asked for a launch.
struct asked_room {
  enum class answer : std::uint8_t { fits, nothing, dropped, never } is;
  flight* promised = nullptr;  // where it fits
};

class tap_core {
 public:
  tap_core(device_ref on, const monitor_options& how);

  // What is watched. Each change is another word in the keys of recordings.
  void watch(std::vector<tap_spec> specs);
  void enable(point_set enabled);
  // Nothing, where no producer would fire: such steps share the recordings of unobserved ones.
  std::uint64_t recorded_as() const;
  std::uint64_t enabled_version() const { return enabled_version_; }
  bool is_enabled(const tapped_point& one, step_gate gate) const {
    const bool always = gate == step_gate::ungated && !one.rows.follows_tables();
    return (always && !REPRISE_MUTANT(prefill_is_gated)) ||
           enabled_.contains({one.kind, one.layer});
  }
  // Throws usage_error, naming the point, for a tensor that cannot be tapped. Nothing: it is not
  // watched.
  std::optional<tapped_point> tapped(point where, const tensor_ref& what);

  // Whose rows the next step has.
  void next_step(std::span<const request_rows> requests, step_gate gate);
  std::span<const request_rows> requests() const { return requests_; }
  step_gate gate() const { return gate_; }
  // A step runs: its number. Its requests and its gate are no other's.
  std::uint64_t begin_step();

  // May wait, as the options say.
  asked_room ask(std::span<const tapped_point> points, std::span<const request_rows> requests);
  void launched(flight& one, stream_ref on, std::uint64_t step, replay_id replay);
  void withdraw(flight& one);
  // Of a tensor that is larger than the ring: what is in host memory now.
  void deliver_directly(const tapped_point& one, std::span<const request_rows> requests,
                        std::uint64_t step, replay_id replay, std::vector<std::byte> bytes,
                        std::uint64_t most);
  std::shared_ptr<const reason> never_fits(std::string_view what,
                                           std::span<const tapped_point> points);
  void told_plan();

  void flush();
  void await_request(std::uint64_t request);
  void stop();
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  tap_counts counts();
  std::string unmatched();

  const device_ref device;
  const monitor_options options;
  pool memory;
  stream side;                        // producers of captures
  std::shared_ptr<ring_memory> ring;  // graphs keep it
  tap_counts counted;                 // under guard
  mutex guard;
  flights all;  // under guard
  drain drains;
  std::deque<event> joins;  // of producers of one capture at a time
  event begun;              // where one capture begins
  event crossing;

 private:
  struct known_point {
    std::string kind;
    int layer;
    shard_of shard;
  };

  std::uint64_t id_of(point where);
  bool wait_for_room(std::int64_t deadline);
  void deliver_all();
  void drop(std::span<const tapped_point> points);
  void run_drain();

  std::uint64_t id_;
  std::uint64_t version_ = 1;
  std::uint64_t enabled_version_ = 1;
  std::vector<tap_spec> specs_;
  point_set enabled_ = point_set::all();
  bool watches_ = false;               // any spec names a point and takes rows of it
  step_gate gate_ = step_gate::gated;  // of the next step
  std::deque<known_point> known_;      // by id; kinds stay where they are
  std::vector<request_rows> requests_;
  std::uint64_t steps_ = 0;

  std::atomic<bool> stopped_{false};
  std::atomic<bool> ending_{false};
  std::mutex sleeping_;
  std::condition_variable woken_;
  std::unique_ptr<host_thread> thread_;
};

}  // namespace reprise
