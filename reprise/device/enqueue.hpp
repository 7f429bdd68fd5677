// Copies, fills, host calls and external work; and the door that all enqueued work passes.
//
// Everything here is in stream order and returns before the work has run. Inside a capture it
// becomes part of the graph, and the id of its node is returned; outside, none.
#pragma once

#if defined(REPRISE_CHECKED)
#error "a checked compile is for kernel bodies: keep them in a .cpp apart from code that launches"
#endif

#include <bit>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string_view>

#include "reprise/device/device.hpp"
#include "reprise/device/view.hpp"

namespace reprise {

// The door: tells this thread's watch, then the device.
node_id enqueue(stream_ref stream, const work& what);

// While it lives, each work that this thread enqueues is shown to `see` first; what `see` throws
// stops the work. Watches nest, the innermost sees first. A recording's warm-up is watched so that
// writes to memory nobody named are refused.
class submission_watch {
 public:
  using seen = std::function<void(stream_ref, const work&)>;

  explicit submission_watch(seen see);
  ~submission_watch();
  submission_watch(const submission_watch&) = delete;
  submission_watch& operator=(const submission_watch&) = delete;

 private:
  friend void show_to_watches(stream_ref, const work&);
  seen see_;
  submission_watch* outer_;
};

// While it lives, it is told of each stream and event that this thread's host calls have waited
// for.
class host_wait_watch {
 public:
  host_wait_watch(std::function<void(stream_id)> stream, std::function<void(event_id)> passed);
  ~host_wait_watch();
  host_wait_watch(const host_wait_watch&) = delete;
  host_wait_watch& operator=(const host_wait_watch&) = delete;

 private:
  friend void tell_waited(stream_id);
  friend void tell_waited(event_id);
  std::function<void(stream_id)> stream_;
  std::function<void(event_id)> event_;
  host_wait_watch* outer_;
};
void tell_waited(stream_id stream);
void tell_waited(event_id passed);

// Bytes between any of device, pinned and host memory. Pageable host memory may be reused when the
// call returns, and is refused inside a capture.
node_id copy_bytes(site at, const std::byte* from, std::byte* to, std::size_t bytes);

// Throws usage_error when what is copied does not fit.
void require_room(std::size_t from_bytes, std::size_t to_bytes, std::source_location place);

// `to` may be larger than `from`; smaller is a usage_error.
template <class T>
node_id copy(site at, read<T> from, write<T> to) {
  require_room(from.bytes(), to.bytes(), at.place);
  return copy_bytes(at, reinterpret_cast<const std::byte*>(from.data()),
                    reinterpret_cast<std::byte*>(to.data()), from.bytes());
}

node_id fill_bytes(site at, std::byte* to, std::size_t bytes, std::uint32_t pattern,
                   std::uint8_t pattern_bytes);

// The bits of a value of 1, 2 or 4 bytes, as a fill repeats them.
template <class T>
  requires(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4)
std::uint32_t pattern_of(T value) {
  if constexpr (sizeof(T) == 1) return std::bit_cast<std::uint8_t>(value);
  if constexpr (sizeof(T) == 2) return std::bit_cast<std::uint16_t>(value);
  if constexpr (sizeof(T) == 4) return std::bit_cast<std::uint32_t>(value);
}

// Elements of 1, 2 or 4 bytes.
template <class T>
  requires(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4)
node_id fill(site at, write<T> to, T value) {
  return fill_bytes(at, reinterpret_cast<std::byte*>(to.data()), to.bytes(), pattern_of(value),
                    sizeof(T));
}

// A place in the order and nothing more; in a graph, a node of its own.
node_id empty(site at, std::string_view label);

// Work that Reprise does not launch itself (a library, a user's kernels). `run` gets the native
// stream (null on a simulated device) and must touch only the spans declared. In a capture, a GPU
// records what `run` enqueues, all under one id; a simulated device calls `run` again at each
// launch.
node_id external(site at, std::string_view label, std::initializer_list<access> touches,
                 const std::function<void(void* native_stream)>& run);

// A function of the host that runs in stream order, on every replay too: slow, since the stream
// waits for the host. It may not call the device; what it throws goes to the error handler.
node_id host_call(site at, std::string_view label, std::initializer_list<access> touches,
                  const std::function<void()>& run);

}  // namespace reprise
