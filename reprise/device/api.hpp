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
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/device/node.hpp"
#include "reprise/device/work.hpp"

namespace reprise {

// Whose kernel bodies a device runs. `trial` is for tests: a device with few bodies, which run on
// the host like those of `cpu` (sim::open_in_order).
enum class device_kind : std::uint8_t { cpu, cuda, trial };

constexpr std::string_view name_of(device_kind kind) {
  switch (kind) {
    case device_kind::cpu: return "cpu";
    case device_kind::cuda: return "cuda";
    case device_kind::trial: return "trial";
  }
  return "?";
}

// What a device says of itself; constant while it is open.
struct device_traits {
  std::string name;   // "cpu", "cuda:0"
  std::string model;  // of the processor or card, for people
  device_kind bodies = device_kind::cpu;
  std::vector<std::string> arch_chain;  // best first: {"avx2", "generic"}, {"sm_90", …, "sm_80"}
  int threads = 1;                      // that a CPU body may use; 1 on a GPU
  std::string arch_note = {};           // where the chain comes from, for people; may be empty
};

enum class memory_kind : std::uint8_t { device, pinned };

class host_scheduler;  // host_thread.hpp

// What a pool does with a piece of its slabs. `idle`: nobody's from now on, whatever ran before.
// `lent`: from its beginning on, the graph that is being captured has a block that was taken
// outside and freed in it. The others are in the order of a stream.
enum class block_change : std::uint8_t { taken, freed, idle, lent };
struct block_note {
  block_change change = block_change::idle;
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::string_view pool;
  std::source_location place;
};

// Whose ready work a GPU takes first, where it cannot take all of it. In a graph that was captured
// on streams of both, each node keeps that of its stream; a graph of one has that of the stream it
// is launched on.
enum class stream_priority : std::uint8_t { usual, ahead };

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
  // How host threads of this device are started; null: as any other.
  virtual host_scheduler* threads() { return nullptr; }
  // The implementation beneath all decorators.
  virtual device_api& innermost() { return *this; }
  virtual memory_figures memory(place from) = 0;

  // Slabs and pinned blocks, aligned to 256 bytes at least. Allowed while a capture is open on any
  // stream: it is not part of the capture. Throws out_of_memory.
  virtual std::byte* allocate(memory_kind kind, std::size_t bytes, place from) = 0;
  virtual void release(memory_kind kind, std::byte* block) noexcept = 0;

  // Pools say what becomes of pieces of slabs, for devices that check what works touch. A stream
  // that was destroyed stands for all that is over.
  virtual void note(stream_id, const block_note&) noexcept {}

  // The host has read, with acquire, what a work has released into this word of pinned memory: what
  // the host does from now on comes behind all that this work did. For devices that check order.
  virtual void acquired(const std::byte*) noexcept {}

  // Non-blocking streams. Destroying one waits for its work first.
  virtual stream_id create_stream(stream_priority priority, place from) = 0;
  virtual void destroy(stream_id stream) noexcept = 0;
  virtual void synchronize(stream_id stream, place from) = 0;

  // An event that was never recorded counts as finished.
  virtual event_id create_event(place from) = 0;
  virtual void destroy(event_id event) noexcept = 0;
  virtual bool finished(event_id event, place from) = 0;
  virtual void synchronize(event_id event, place from) = 0;
  // Records the event unless the stream is being captured, which another thread may begin at any
  // moment: asking first would not do. False: nothing was done.
  virtual bool record_outside(stream_id stream, event_id event, place from) = 0;

  // The one door: enqueues now, or adds to the capture that is open on the stream; then the id of
  // what became of it, from the capture's tail. Events have no nodes and give none.
  virtual node_id submit(stream_id stream, const work& what) = 0;

  // Thread-local capture; streams that wait for a captured event join it, and must be joined back.
  // `end_capture` throws capture_error when anything made the capture invalid; `abandon_capture`
  // ends it whatever its state and throws away what was recorded.
  virtual void begin_capture(stream_id stream, place from) = 0;
  virtual graph_id end_capture(stream_id stream, place from) = 0;
  virtual void abandon_capture(stream_id stream) noexcept = 0;
  virtual bool capturing(stream_id stream) const = 0;

  // Where the stream stands in its capture; and whether what was done up to such a place comes
  // before all that `stream` does from now on. Both answer for open captures only.
  virtual capture_place place_in_capture(stream_id stream) const = 0;
  virtual bool precedes(const capture_place& earlier, stream_id stream) const = 0;
  // The graph of the capture that the stream is in, its clones and their executables hold `owner`
  // until the last launch of the last of them is done.
  virtual void keep(stream_id captured, std::shared_ptr<const void> owner) = 0;

  // A graph is a template. What is made of it outlives it, node ids included.
  virtual std::vector<node_row> nodes(graph_id graph, place from) const = 0;
  // A copy without some works, whose nodes' predecessors are tied to their successors. Refuses by
  // name what cannot be toggled, and nodes with a programmatic edge.
  virtual graph_id clone_without(graph_id graph, std::span<const node_id> gone, place from) = 0;
  virtual void destroy(graph_id graph) noexcept = 0;

  // Instantiates and uploads, so that no launch pays for it and nothing can be changed too early.
  // All nodes are enabled.
  virtual executable_id instantiate(graph_id graph, stream_id upload_on, place from) = 0;
  // The same, with nodes that kernels may switch while the graph runs; `driven` are single kernels.
  // It can only be launched and asked for their handles, and the graph serves for nothing else
  // afterwards: CUDA instantiates such a graph once.
  virtual executable_id instantiate_device_driven(graph_id graph, std::span<const node_id> driven,
                                                  stream_id upload_on, place from) = 0;
  virtual device_node device_handle(executable_id executable, node_id node, place from) = 0;

  // In the order of the stream, and behind the executable's earlier launches.
  virtual void launch(executable_id executable, stream_id stream, place from) = 0;

  // Changes count for launches that are enqueued afterwards, and never wait for earlier ones. Calls
  // on one executable from several threads are taken one by one.
  virtual void enable(executable_id executable, node_id node, bool on, place from) = 0;
  // `what` is of the kind that the node was recorded as; whether it is enabled does not change.
  virtual void set_parameters(executable_id executable, node_id node, const work& what) = 0;
  // Takes all parameters from another graph; what set_parameters and enable did is done again.
  // False when its topology is another: nothing was changed, and no error is left behind.
  virtual bool update(executable_id executable, graph_id graph, place from) = 0;
  // The executable holds `owner` until its last launch is done.
  virtual void keep(executable_id executable, std::shared_ptr<const void> owner) = 0;

  // Launches may be in flight: it goes when the last one is done.
  virtual void destroy(executable_id executable) noexcept = 0;

  // Waits for what is in flight of objects that were destroyed, and closes them.
  virtual void settle() noexcept = 0;
  // Closes those that are over by now, and waits for nothing.
  virtual void close_finished() noexcept = 0;

  // What the driver holds for each node of an executable, in bytes: an estimate, calibrated at the
  // first call.
  virtual std::size_t bytes_per_node(place from) = 0;
};

}  // namespace reprise
