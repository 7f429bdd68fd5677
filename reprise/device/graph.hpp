// Capture, graph, executable: the type is the phase.
//
// A graph is a template. An executable is born uploaded and outlives it; a `fixed_executable` can
// be launched and no more, since its nodes are switched by kernels. One executable runs one launch
// at a time; `recording` in replay/ keeps the order with all that a replay touches, and most users
// want that instead.
//
// Threads: a graph is used by one thread at a time. Calls that change an executable may come from
// several threads and are taken one by one.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/node.hpp"
#include "reprise/device/view.hpp"

namespace reprise {

class graph;

// An executable that somebody else owns.
class executable_ref {
 public:
  executable_ref(device_ref device, executable_id id) : device_{device}, id_{id} {}

  device_ref device() const { return device_; }
  executable_id id() const { return id_; }

  // In stream order. The stream is of the device that it was captured on.
  void launch(site at) const;
  // Launches enqueued from now on run the node, or skip it; earlier ones keep what they have.
  // Kernels, copies and fills; throws usage_error for anything else, by name.
  void enable(node_id node, bool on,
              std::source_location from = std::source_location::current()) const;

 private:
  device_ref device_;
  executable_id id_;
};

// What the owners of executables share. It may go while launches are in flight; it then lasts until
// the last one is done.
class owned_executable {
 public:
  owned_executable(owned_executable&& other) noexcept;
  owned_executable& operator=(owned_executable&& other) noexcept;
  ~owned_executable();

  device_ref device() const { return device_; }
  executable_id id() const { return id_; }
  void launch(site at) const { executable_ref{device_, id_}.launch(at); }
  std::size_t nodes() const { return nodes_; }

 protected:
  owned_executable(device_ref device, executable_id id, std::size_t nodes);

  device_ref device_;
  executable_id id_;

 private:
  std::size_t nodes_ = 0;
};

// The host may launch it, nothing else: its driven nodes are switched by kernels.
class fixed_executable : public owned_executable {
 public:
  // For the arguments of a kernel that switches the node (ops/switch_nodes.hpp).
  device_node handle(node_id node,
                     std::source_location from = std::source_location::current()) const;

 private:
  friend class graph;
  using owned_executable::owned_executable;
};

class executable : public owned_executable {
 public:
  operator executable_ref() const { return {device_, id_}; }

  // As executable_ref's.
  void enable(node_id node, bool on,
              std::source_location from = std::source_location::current()) const {
    executable_ref{device_, id_}.enable(node, on, from);
  }

  // Other arguments for one node, of the kind it was recorded as. Whether it is enabled does not
  // change; a disabled node has them when it is enabled. kernel/launch.hpp has `change` for
  // kernels.
  template <class T>
  void change_copy(node_id node, read<T> from, write<T> to,
                   std::source_location place = std::source_location::current()) {
    change_copy_bytes(node, reinterpret_cast<const std::byte*>(from.data()), from.bytes(),
                      reinterpret_cast<std::byte*>(to.data()), to.bytes(), place);
  }
  template <class T>
    requires(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4)
  void change_fill(node_id node, write<T> to, T value,
                   std::source_location place = std::source_location::current()) {
    change_fill_bytes(
        node, {reinterpret_cast<std::byte*>(to.data()), to.bytes(), pattern_of(value), sizeof(T)},
        place);
  }
  void change(node_id node, const work& what);

  // All parameters from another graph of the same topology; changes and switches made here are
  // made again on top. False when the topology is another: nothing was changed.
  bool update(const graph& from, std::source_location place = std::source_location::current());

 private:
  friend class graph;
  using owned_executable::owned_executable;
  void change_copy_bytes(node_id node, const std::byte* from, std::size_t from_bytes, std::byte* to,
                         std::size_t to_bytes, std::source_location place);
  void change_fill_bytes(node_id node, const fill_call& fill, std::source_location place);
};

// A graph that somebody else owns: it can be looked at.
class graph_ref {
 public:
  graph_ref(device_ref device, graph_id id) : device_{device}, id_{id} {}

  device_ref device() const { return device_; }
  graph_id id() const { return id_; }

  std::vector<node_row> nodes(std::source_location from = std::source_location::current()) const;
  std::size_t size() const { return nodes().size(); }

 protected:
  device_ref device_;
  graph_id id_;
};

class graph : public graph_ref {
 public:
  graph(graph&& other) noexcept;
  graph& operator=(graph&& other) noexcept;
  ~graph();

  executable instantiate(site upload_on) const;
  // Its `driven` nodes, each a single kernel, are switched by kernels that run before them. Takes
  // the graph: CUDA instantiates such a one once.
  fixed_executable instantiate_device_driven(site upload_on, std::span<const node_id> driven) &&;
  fixed_executable instantiate_device_driven(site upload_on,
                                             std::initializer_list<node_id> driven) && {
    return std::move(*this).instantiate_device_driven(upload_on,
                                                      std::span{driven.begin(), driven.size()});
  }
  // A clone in which the predecessors of each work that is gone precede its successors. Kernels,
  // copies and fills; throws usage_error for anything else, by name. Ids stay what they are.
  graph without(std::span<const node_id> gone,
                std::source_location from = std::source_location::current()) const;
  graph without(std::initializer_list<node_id> gone,
                std::source_location from = std::source_location::current()) const {
    return without(std::span{gone.begin(), gone.size()}, from);
  }

 private:
  friend class open_capture;
  using graph_ref::graph_ref;
};

// A capture of the stream, from here to `end`, on this thread: for those who begin and end in
// different places. `capture` below is for the others. One that is not ended is abandoned.
class open_capture {
 public:
  explicit open_capture(site at);
  ~open_capture();
  open_capture(const open_capture&) = delete;
  open_capture& operator=(const open_capture&) = delete;

  // Throws capture_error when anything made the capture invalid; the stream is usable after.
  graph end(std::source_location from = std::source_location::current());

 private:
  stream_ref stream_;
  bool ended_ = false;
};

// Records what `body` enqueues on the stream, and on streams that it forks and joins. Throws what
// the body throws, capture_error or out_of_memory; the stream is usable after, and nothing ran.
graph capture(site at, const std::function<void(stream_ref)>& body);

}  // namespace reprise
