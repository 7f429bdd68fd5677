// sim_controls: what a test may do to an adversarial device beside using it.
//
//   sim::controls* const sim = sim::controls_of(dev);   // null on other devices
//   sim->hold(s.id()); ... sim->release(s.id());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/device/device.hpp"
#include "reprise/sim/journal.hpp"

namespace reprise::sim {

class controls {
 public:
  virtual ~controls() = default;

  // Nothing that is enqueued behind the hold runs until the stream is released. Once at a time.
  virtual void hold(stream_id stream) = 0;
  virtual void release(stream_id stream) = 0;
  // Works of the stream last `factor` times as long.
  virtual void slow(stream_id stream, std::uint64_t factor) = 0;
  // How long works of this label last; 1 unless said.
  virtual void lasts(std::string_view label, std::uint64_t units) = 0;

  // As CUDA's global capture mode: from now on a query, a wait or an allocation by another thread
  // spoils every open capture.
  virtual void capture_globally(bool on) = 0;
  // What another thread might have done: the capture that the stream is in is invalid from now on.
  virtual void spoil_capture(stream_id stream, std::string_view cause) = 0;

  // Memory that the host itself touches, which the device cannot see: from now on it has been read
  // or written here, after all that this thread waited for.
  virtual void host_touches(const void* begin, std::size_t bytes, bool writes,
                            std::source_location from = std::source_location::current()) = 0;

  virtual const journal& so_far() const = 0;
  // The latest end of a work that ran.
  virtual std::uint64_t now() const = 0;
};

controls* controls_of(device_ref device);

}  // namespace reprise::sim
