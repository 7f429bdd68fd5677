// THE SEAM. Two implementations stand behind it, `cuda/` and `sim/`; decorators wrap either.
//
// Users never call it: device.hpp, memory.hpp, enqueue.hpp and graph.hpp are its front. Handles are
// the device's own; a handle of one device is never given to another. Every failing call throws a
// device_error (or capture_error, out_of_memory) that names the call and `from`; after that the
// stream is usable, unless the message says that the device is lost. Destroying does not throw.
//
// Threads: calls on different streams may come from different threads; calls on one stream come
// from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/device/work.hpp"

namespace reprise {

enum class device_kind : std::uint8_t { cpu, cuda };  // whose kernel bodies a device runs

constexpr std::string_view name_of(device_kind kind) {
  return kind == device_kind::cpu ? "cpu" : "cuda";
}

// What a device says of itself; constant while it is open.
struct device_traits {
  std::string name;   // "cpu", "cuda:0"
  std::string model;  // of the processor or card, for people
  device_kind bodies = device_kind::cpu;
  std::vector<std::string> arch_chain;  // best first: {"avx2", "generic"}, {"sm_90", …, "sm_80"}
  int threads = 1;                      // that a CPU body may use; 1 on a GPU
};

enum class memory_kind : std::uint8_t { device, pinned };

// Bytes of the whole device as it reports them, all users of it counted.
struct memory_figures {
  std::size_t total = 0;
  std::size_t free = 0;
};

class device_api {
 public:
  using place = std::source_location;

  virtual ~device_api() = default;

  virtual const device_traits& traits() const = 0;
  virtual memory_figures memory(place from) = 0;

  // Slabs and pinned blocks, aligned to 256 bytes at least. Allowed while a capture is open on any
  // stream: it is not part of the capture. Throws out_of_memory.
  virtual std::byte* allocate(memory_kind kind, std::size_t bytes, place from) = 0;
  virtual void release(memory_kind kind, std::byte* block) noexcept = 0;

  // Non-blocking streams. Destroying one waits for its work first.
  virtual stream_id create_stream(place from) = 0;
  virtual void destroy(stream_id stream) noexcept = 0;
  virtual void synchronize(stream_id stream, place from) = 0;

  // An event that was never recorded counts as finished.
  virtual event_id create_event(place from) = 0;
  virtual void destroy(event_id event) noexcept = 0;
  virtual bool finished(event_id event, place from) = 0;
  virtual void synchronize(event_id event, place from) = 0;

  // The one door: enqueues now, or adds to the capture that is open on the stream.
  virtual void submit(stream_id stream, const work& what) = 0;

  // Thread-local capture; streams that wait for a captured event join it, and must be joined back.
  // `end_capture` throws capture_error when anything made the capture invalid; `abandon_capture`
  // ends it whatever its state and throws away what was recorded.
  virtual void begin_capture(stream_id stream, place from) = 0;
  virtual graph_id end_capture(stream_id stream, place from) = 0;
  virtual void abandon_capture(stream_id stream) noexcept = 0;
  virtual bool capturing(stream_id stream) const = 0;

  virtual std::size_t node_count(graph_id graph) const = 0;
  virtual void destroy(graph_id graph) noexcept = 0;

  // Instantiates and uploads, so that no launch pays for it. The graph may be destroyed after.
  virtual executable_id instantiate(graph_id graph, stream_id upload_on, place from) = 0;
  virtual void launch(executable_id executable, stream_id stream, place from) = 0;
  // The caller has seen its last launch finish.
  virtual void destroy(executable_id executable) noexcept = 0;
};

}  // namespace reprise
