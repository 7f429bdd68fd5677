// How the work of a simulated device runs, and where its memory comes from.
//
// simulated_device answers the calls of the seam and keeps the rules of captures and graphs, which
// are the same however work runs. Two engines stand behind it: `in_order` runs everything at once
// (`cpu`), `adversary` as late and as mixed as the rules allow (`sim:seed=N`).
//
//   seam call -> simulated_device -> what is left of it outside captures -> engine
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>

#include "reprise/device/api.hpp"
#include "reprise/sim/graph.hpp"

namespace reprise::sim {

class engine {
 public:
  using place = std::source_location;

  virtual ~engine() = default;

  // Every call that can fail begins here, with no lock of the device held.
  virtual void enter(std::string_view call, place from) = 0;
  virtual host_scheduler* threads() = 0;

  virtual memory_figures figures() = 0;
  virtual std::byte* allocate(memory_kind kind, std::size_t bytes, place from) = 0;  // or null
  virtual void release(memory_kind kind, std::byte* block) noexcept = 0;
  // Whether all of these bytes lie in one block that was allocated here.
  virtual bool owns(const std::byte* begin, std::size_t bytes) const = 0;
  // Whether they lie in or across a block, live or remembered, and not wholly in a live one.
  virtual bool strays(const std::byte* begin, std::size_t bytes) const = 0;
  // Whether notes are worth making, and places in graphs.
  virtual bool watches_memory() const = 0;
  virtual void note(stream_id stream, const block_note& what) noexcept = 0;

  // See the seam: the host comes behind whoever wrote the word last.
  virtual void acquired(const std::byte*) noexcept {}

  // Streams and events of eager work; `number` is for people.
  virtual void open(stream_id stream, std::uint64_t number, place from) = 0;
  virtual void close(stream_id stream) noexcept = 0;  // behind its work
  virtual void record(event_id event, stream_id stream, place from) = 0;
  virtual void wait(event_id event, stream_id stream, place from) = 0;
  virtual void forget(event_id event) noexcept = 0;
  virtual bool happened(event_id event, place from) = 0;
  virtual void finish(event_id event, place from) = 0;
  virtual void finish(stream_id stream, place from) = 0;

  virtual void run(stream_id stream, const work& what) = 0;
  virtual void launch(const std::shared_ptr<executable_body>& body, stream_id stream,
                      place from) = 0;
  // Its owner is done with it; launches may be left.
  virtual void retire(std::shared_ptr<executable_body> body) noexcept = 0;
  // Behind the last launches of all that was retired.
  virtual void settle() noexcept = 0;
  virtual void close_finished() noexcept = 0;

  // What is captured is seen, too: for the record of a run.
  virtual void captured(stream_id stream, const work& what) = 0;
  // A capture is over, well or not. For modes that reach beyond its thread.
  virtual void capture_changed(stream_id origin, bool open) noexcept = 0;
};

}  // namespace reprise::sim
