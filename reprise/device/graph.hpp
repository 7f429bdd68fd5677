// Capture, graph, executable: the type is the phase.
//
// A graph is a template; an executable is born uploaded and outlives the graph. One executable runs
// one launch at a time; `recording` in replay/ keeps that order, and most users want that instead.
#pragma once

#include <cstddef>
#include <functional>
#include <source_location>

#include "reprise/device/device.hpp"

namespace reprise {

class executable {
 public:
  executable(executable&& other) noexcept;
  executable& operator=(executable&& other) noexcept;
  // Whoever destroys it has seen its last launch finish.
  ~executable();

  // In stream order. The device must be the one it was captured on.
  void launch(site at) const;

 private:
  friend class graph;
  executable(device_ref device, executable_id id) : device_{device}, id_{id} {}

  device_ref device_;
  executable_id id_;
};

class graph {
 public:
  graph(graph&& other) noexcept;
  graph& operator=(graph&& other) noexcept;
  ~graph();

  std::size_t nodes() const;
  executable instantiate(site upload_on) const;

 private:
  friend graph capture(site, const std::function<void(stream_ref)>&);
  graph(device_ref device, graph_id id) : device_{device}, id_{id} {}

  device_ref device_;
  graph_id id_;
};

// Records what `body` enqueues on the stream, and on streams that it forks and joins. Throws what
// the body throws, capture_error or out_of_memory; the stream is usable after, and nothing ran.
graph capture(site at, const std::function<void(stream_ref)>& body);

}  // namespace reprise
