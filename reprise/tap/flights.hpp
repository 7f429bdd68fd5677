// Flights: plans that have been promised room and are not delivered yet, oldest first.
//
// A flight is what one launch publishes: the producers of a replay, or one of an eager run. Here it
// is promised room, its words are looked for, and it is said to be over when each is found or its
// producer can never come: the next flight of its stream has published, or the stream has passed
// it. A fixed number of them, made once; each has its plan words in pinned memory, which nobody
// rewrites until the flight is drained.
//
// Threads: every call holds the monitor's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reprise/tap/monitor_options.hpp"
#include "reprise/tap/plan.hpp"
#include "reprise/tap/ring.hpp"
#include "reprise/tap/tap_counts.hpp"

namespace reprise {

enum class found : std::uint8_t { not_yet, whole, lost };

struct flight {
  enum class phase : std::uint8_t { promised, launched, withdrawn };

  std::uint64_t number = 0;
  phase is = phase::promised;
  bool passed = false;  // by its stream: what is not there now never comes
  std::uint64_t step = 0;
  replay_id replay = replay_id::none;
  std::optional<stream_ref> stream;
  step_plan plan;
  std::vector<tapped_point> points;
  std::vector<found> state;          // of each publication
  std::vector<std::uint64_t> bytes;  // of rows, as published
  std::span<std::uint64_t> words;    // pinned
  std::vector<std::byte> direct;     // a tensor that went straight to the host

  bool is_direct() const { return !direct.empty(); }
};

class flights {
 public:
  flights(device_ref device, const monitor_options& options,
          std::shared_ptr<const ring_memory> ring, tap_counts& counts);

  enum class answer : std::uint8_t { fits, nothing, full, never };

  // Plans what these points publish and asks for room. `fits`: the newest flight has it, promised.
  // Throws usage_error as the plan does.
  answer promise(std::span<const tapped_point> points, std::span<const request_rows> requests);
  // The same for one tensor that lies in host memory already, of whose rows `most` bytes are meant;
  // false: no flight is free.
  bool add_direct(const tapped_point& one, std::span<const request_rows> requests,
                  std::vector<std::byte> bytes, std::uint64_t most);
  flight& newest() { return at(count_ - 1); }
  void launched(flight& one, stream_ref on, std::uint64_t step, replay_id replay);
  // Nothing of it runs, and its words have been read by whatever read them.
  void withdraw(flight& one);

  // Looks for words; what is over has nothing left that is not_yet.
  void look();
  bool is_over(const flight& one) const;
  // Whether the stream of the oldest has passed it, asked without waiting.
  void probe_oldest();

  std::size_t count() const { return count_; }
  bool is_full() const { return count_ == all_.size(); }
  flight& at(std::size_t i) { return all_[(first_ + i) % all_.size()]; }
  std::uint64_t next_number() const { return next_number_; }
  // What was planned of each point: what became of it is counted as it is found out, by whoever
  // drains, so a step touches none of these.
  void count_planned(std::vector<point_counts>& points) const;
  // The room of the `n` oldest is free again; they stay until they are delivered.
  void give_back(std::size_t n);
  void pop(std::size_t n);

  const ring_account& account() const { return account_; }
  // The plan words of all flights, one after the other, and behind them a plan that is off: zeros.
  const pinned<std::uint64_t>& plans() const { return words_; }
  std::size_t plan_of(const flight& one) const {
    return static_cast<std::size_t>(&one - all_.data());
  }
  std::size_t plan_that_is_off() const { return all_.size(); }
  std::size_t words_per_plan() const { return words_per_plan_; }

 private:
  flight& begin(std::span<const tapped_point> points, std::span<const request_rows> requests);
  void commit(flight& made);
  void look_at(flight& one);
  void look_at(flight& one, std::size_t i);
  void lose(flight& one, std::size_t i, std::uint64_t tap_counts::*why);
  bool has_published(const flight& one) const;
  point_counts& counts_of(const flight& one, std::size_t i);

  device_ref device_;
  const monitor_options& options_;
  std::shared_ptr<const ring_memory> ring_;
  tap_counts& counts_;
  ring_account account_;
  std::size_t words_per_plan_;
  pinned<std::uint64_t> words_;
  std::vector<flight> all_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::uint64_t next_number_ = 0;
  std::optional<event> probe_;
  std::uint64_t probed_ = 0;  // number of the flight that the probe is for, plus 1; 0: none
};

}  // namespace reprise
