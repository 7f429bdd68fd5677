// For this room's .cpp files: the engine of `sim:seed=N`: work is queued, and the seed says what
// runs when.
//
// Everything happens inside calls of the seam, by the one host thread that has the turn. A call may
// first let other threads and some works run; a call that waits runs works until what it waits for
// is done. A work is ready when all that it waits for is done; which of the ready ones runs next,
// how late, and whether only what is needed runs, are the temper of the seed.
//
//   adversary.cpp          enqueueing: streams, events, launches
//   adversary_memory.cpp   slabs, and what pools do with them
//   schedule.cpp           what runs next, waiting, host threads
//   execute.cpp            running one work, and looking at what it touches
//   adversary_device.cpp   the device over it, and its controls
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutex.hpp"
#include "reprise/device/host_thread.hpp"
#include "reprise/device/touch_log.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/sim/dice.hpp"
#include "reprise/sim/engine.hpp"
#include "reprise/sim/notebook.hpp"
#include "reprise/sim/pending.hpp"
#include "reprise/sim/turns.hpp"
#include "reprise/sim/watched_memory.hpp"

namespace reprise::sim {

class adversary final : public engine, public host_scheduler, public fault_listener {
 public:
  adversary(const adversary_options& options, std::string name);
  ~adversary() override;

  void enter(std::string_view call, place from) override;
  host_scheduler* threads() override { return this; }

  memory_figures figures() override;
  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override;
  void release(memory_kind kind, std::byte* block) noexcept override;
  bool owns(const std::byte* begin, std::size_t bytes) const override {
    return memory_.owns(begin, bytes);
  }
  bool strays(const std::byte* begin, std::size_t bytes) const override {
    return memory_.strays(begin, bytes);
  }
  bool watches_memory() const override { return options_.watches_memory; }
  void note(stream_id stream, const block_note& what) noexcept override;
  void acquired(const std::byte* word) noexcept override;

  void open(stream_id stream, std::uint64_t number, place from) override;
  void close(stream_id stream) noexcept override;
  void record(event_id event, stream_id stream, place from) override;
  void wait(event_id event, stream_id stream, place from) override;
  void forget(event_id event) noexcept override { marks_.erase(event); }
  bool happened(event_id event, place from) override;
  void finish(event_id event, place from) override;
  void finish(stream_id stream, place from) override;

  void run(stream_id stream, const work& what) override;
  void launch(const std::shared_ptr<executable_body>& body, stream_id stream, place from) override;
  void retire(std::shared_ptr<executable_body> body) noexcept override;
  void settle() noexcept override;
  void close_finished() noexcept override { bury(); }

  void captured(stream_id stream, const work& what) override;
  void capture_changed(stream_id origin, bool open) noexcept override;

  // host_scheduler
  std::uint64_t start(std::function<void()> body) override;
  void join(std::uint64_t thread) override;
  void pause() override;
  std::chrono::milliseconds now() const override {
    return std::chrono::milliseconds{static_cast<std::int64_t>(pauses_)};
  }

  // fault_listener
  bool takes(std::string_view point) override;
  void reached(std::string_view landmark) override { notes_.reached(landmark); }

  // What tests control.
  void hold(stream_id stream);
  void let_go(stream_id stream);
  void slow(stream_id stream, std::uint64_t factor);
  void lasts(std::string_view label, std::uint64_t units);
  void host_touches(const void* begin, std::size_t bytes, bool writes, place from);
  const journal& so_far() const { return notes_.so_far(); }
  std::uint64_t latest_end() const { return latest_end_; }

  // The device is being closed: threads are run to their end, and what is still held is a finding.
  void close_device(const std::string& held) noexcept;

 private:
  enum class pick : std::uint8_t { any, oldest, newest, by_rank };
  // How a seed goes about it; parts are of 256.
  struct temper {
    unsigned eagerness;   // that a work runs at a call that need not wait
    unsigned hand_overs;  // that another thread goes on at a call
    unsigned faults;      // that a fault point is taken
    unsigned reuse;       // that a released address is given out again
    bool only_needed;     // a wait runs nothing that it need not
    pick next;
  };
  // What is known of an executable beside its body.
  struct executable_line {
    std::vector<lane_place> lanes;  // of its chains of nodes
    item_ref last;                  // the end of its last launch
  };

  static temper temper_of(dice& seed);

  // adversary.cpp
  void attend();
  void leave();
  item host_item();
  item_ref next_on(const std::shared_ptr<line>& on);
  static void put_behind(const item_ref& one, const item_ref& before);
  static void put_at_the_end(line& on, const item_ref& before);
  bool is_pageable(const std::byte* begin, std::size_t bytes) const;
  void enqueue(const item_ref& made);
  lane_place new_lane();
  source_print print_of(const work& what) const;
  void add_nodes(const std::shared_ptr<launch_state>& of, const item_ref& begin,
                 const item_ref& end, executable_line& lanes);
  void bury() noexcept;

  // schedule.cpp
  void require_known(std::string_view call, place from);
  bool is_stranger(std::string_view call) noexcept;
  void leave_word(const std::string& text) noexcept;
  void note_strangers();
  void tell_findings(std::string_view call, place from);
  using item_set = std::unordered_set<const item*>;
  bool step(const item_set* needed = nullptr);
  void wait_for(const std::function<bool()>& done, const std::vector<item_ref>& items,
                std::string_view call, place from);
  [[noreturn]] void fail_deadlocked(const std::string& what, std::string_view call, place from);
  void passed(const mark& at);
  bool all_done(const std::vector<item_ref>& items) const;
  static void yield(void* self);

  // execute.cpp
  void execute(const item_ref& one);
  void run_what(const item_ref& one, const work& what);
  void call_host();
  bool would_stray(const item& one, const work& what) const;
  void execute_kernel(const item& one, const work& what);
  void check_declared(const item& one, const work& what);
  void check_source(const item& one, const work& what);
  void touch(const item& one, const work& what, const std::byte* begin, std::size_t bytes,
             bool writes);
  void do_notes(const item& one, const std::vector<stored_note>& notes);
  void tell(const party& me, const trespass& what);
  party_ref party_of(const item& one, const work& what) const;
  void complete(const item_ref& one);
  std::string text_of(const item& one, const work& what) const;

  const adversary_options options_;
  const std::string name_;
  dice dice_;
  const temper temper_;
  notebook notes_;
  watched_memory memory_;
  turns turns_;
  touch_log touched_;

  std::map<stream_id, std::shared_ptr<line>> lines_;
  std::unordered_map<event_id, mark> marks_;
  std::unordered_map<const executable_body*, executable_line> executables_;
  std::vector<std::shared_ptr<executable_body>> retired_;  // with launches left
  // What works held. It may call the device when it goes, so it goes in calls that hold no lock.
  std::vector<std::shared_ptr<const void>> ended_;
  std::map<std::uint64_t, const item*> pending_;  // items that are not done, by number
  std::vector<item_ref> ready_;
  std::deque<item_ref> host_calls_;  // that are to be run by the thread for them
  std::uint64_t caller_ = 0;         // that thread; 0: not started
  bool caller_ends_ = false;
  std::vector<lane_place> free_lanes_;
  lane_id lanes_ = 0;
  std::uint64_t items_ = 0;
  std::uint64_t launches_ = 0;
  std::uint64_t host_time_ = 0;
  std::uint64_t latest_end_ = 0;
  std::uint64_t progress_ = 0;  // moves whenever anything happens
  std::uint64_t pauses_ = 0;
  std::uint64_t idle_pauses_ = 0;  // since anything happened
  bool told_ = false;              // of a finding, by what a call threw
  vector_clock known_;             // what the host has seen finished
  lane_place host_at_;             // of what the host itself touches
  std::map<std::string, std::uint64_t, std::less<>> durations_;
  const item* inside_ = nullptr;     // the work that is running
  std::uint64_t inside_thread_ = 0;  // and on which thread
  std::atomic<bool> a_stranger_came_{false};
  std::mutex strangers_guard_;
  std::string stranger_;  // what a thread that is not known called; under its guard
};

}  // namespace reprise::sim
