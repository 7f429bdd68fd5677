// The drain: takes what flights have published out of the ring, cuts it into records, and hands
// them to the sinks.
//
// One round copies what lies together as one span, on a stream of its own, into pinned staging; the
// room in the ring is free when the copy is done, before any sink has seen a byte. One round at a
// time, by whoever calls: a thread for it, or those who wait. The monitor's lock is held while
// flights are looked at, never while bytes move or sinks work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "reprise/base/mutex.hpp"
#include "reprise/tap/flights.hpp"
#include "reprise/tap/sinks.hpp"

namespace reprise {

class drain {
 public:
  // All outlive it. `guard`: of the flights and the counts.
  drain(device_ref device, const monitor_options& options, std::shared_ptr<const ring_memory> ring,
        flights& all, mutex& guard, tap_counts& counts);

  void send_to(std::unique_ptr<record_sink> sink);
  // One round. False: there was nothing to do, or somebody else is at it. A failure of the device
  // is kept, and every later round does nothing.
  bool pump();
  // Rounds until all flights below this number are delivered, with their streams waited for.
  void deliver_up_to(std::uint64_t number);
  void flush_sinks();
  void close_sinks();
  // Throws the device's failure, if there was one.
  void raise_failure();
  bool failed();

 private:
  struct piece {
    std::size_t flight = 0;  // from the oldest
    std::size_t publication = 0;
    std::size_t staged = 0;  // where its payload lies
  };
  struct span {
    std::uint64_t position = 0;
    std::uint64_t bytes = 0;
    std::size_t staged = 0;
  };

  bool pump_alone();
  std::size_t choose();
  void copy_spans();
  void move(site at, std::uint64_t from, std::size_t to, std::uint64_t bytes);
  void deliver(std::size_t flights);
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

  mutex round_;  // of all below
  stream own_;
  pinned<std::uint8_t> staging_;
  std::vector<piece> pieces_;
  std::vector<span> spans_;
  std::vector<tap_record> records_;
  std::vector<std::int64_t> shapes_;
  sink_list sinks_;
  std::exception_ptr failed_;  // under guard_
};

}  // namespace reprise
