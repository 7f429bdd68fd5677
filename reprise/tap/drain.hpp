// The drain: takes what flights have published out of the ring, cuts it into records, and lets them
// out.
//
// One round copies what lies together as one span, on a stream of its own, into pinned staging; the
// room in the ring is free when the copy is done, before any sink has seen a byte. Two rounds are
// under way at once, a half of the staging each: one is copied while the records of the other are
// handed over. By whoever calls: a thread for it, or those who wait. The monitor's lock is held
// while flights are looked at, never while bytes move or sinks work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "reprise/base/mutex.hpp"
#include "reprise/tap/drain_choice.hpp"
#include "reprise/tap/flights.hpp"
#include "reprise/tap/outlets.hpp"

namespace reprise {

class drain {
 public:
  // All outlive it. `guard`: of the flights and the counts.
  drain(device_ref device, const monitor_options& options, std::shared_ptr<const ring_memory> ring,
        flights& all, mutex& guard, tap_counts& counts);

  // Where records go. What fails there is no failure of the drain.
  record_outlets& outlets() { return outlets_; }
  // Begins a round, and ends the one before. False: there was nothing to do, or somebody else is at
  // it. A failure of the device is kept, and every later round does nothing.
  bool pump();
  // Rounds until all flights below this number are delivered, with their streams waited for.
  void deliver_up_to(std::uint64_t number);
  // Throws the device's failure, if there was one.
  void raise_failure();
  bool failed();

 private:
  struct piece {
    flight* of = nullptr;
    std::size_t publication = 0;
    std::size_t staged = 0;  // where its payload lies
  };
  struct span {
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
    std::size_t staged = 0;
  };

  struct round {
    explicit round(device_ref device) : copied{device} {}
    bool is_under_way() const { return !flights.empty(); }
    void begin() {
      flights.clear();
      pieces.clear();
      spans.clear();
      bytes = 0;
      has_all = false;
    }

    std::vector<flight*> flights;  // the oldest that no earlier round has
    std::vector<piece> pieces;
    std::vector<span> spans;
    std::uint64_t bytes = 0;  // that its spans move
    bool has_all = false;     // of the staging
    drain_way way = drain_way::copy_engine;
    event copied;
    double began_us = 0;
  };

  bool pump_alone();
  void choose(round& made, const round& before);
  std::size_t add_spans(round& made, flight& one, std::size_t staged);
  void copy_spans(round& made);
  void move(site at, drain_way way, std::uint64_t from, std::size_t to, std::uint64_t bytes);
  void end(round& done);
  void wait_for(round& done);
  void give_back(const round& done);
  void deliver(const round& done);
  void add_records(flight& of, std::size_t i, const std::byte* payload);
  void mislabelled(const flight& of, std::size_t i);
  bool marker_agrees(const flight& of, std::size_t i, const std::byte* payload);
  void pass_oldest();
  void fail(std::exception_ptr why);

  device_ref device_;
  const monitor_options& options_;
  std::shared_ptr<const ring_memory> ring_;
  flights& flights_;
  mutex& guard_;
  tap_counts& counts_;
  record_outlets outlets_;

  mutex turn_;  // of all below
  stream own_;
  pinned<std::uint8_t> staging_;
  std::array<round, 2> rounds_;
  std::size_t next_ = 0;  // of the two
  drain_choice choice_;
  double last_copied_us_ = 0;
  std::vector<tap_record> records_;
  std::vector<std::int64_t> shapes_;
  std::exception_ptr failed_;  // under guard_
};

}  // namespace reprise
