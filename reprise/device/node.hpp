// What the nodes of a graph are, and where a captured stream stands in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/base/ids.hpp"

namespace reprise {

// What Reprise records is one of the first five; a graph of somebody else's may hold any kind.
enum class node_kind : std::uint8_t { kernel, copy, fill, host_call, empty, other };

std::string_view name_of(node_kind kind);

// Only these can be switched off and on in an executable, and taken out of a graph.
constexpr bool can_be_toggled(node_kind kind) {
  return kind == node_kind::kernel || kind == node_kind::copy || kind == node_kind::fill;
}

// One node of a graph. Several share an id where one work became several; `none` and an empty label
// where it was not enqueued through Reprise.
struct node_row {
  node_id id = node_id::none;
  node_kind kind = node_kind::other;
  std::string label;
};

// Ids for implementations of the seam; never the same twice in a process.
node_id next_node();
std::uint64_t next_capture();

// The refusals that all implementations share, as usage_errors: a kind that cannot be switched or
// taken out, an id of another graph, a change to a device-driven executable, a second use of its
// graph.
void require_toggle(std::string_view call, std::string_view label, node_kind kind);
[[noreturn]] void refuse_node(std::string_view call, node_id node);
[[noreturn]] void refuse_driven(std::string_view call);
[[noreturn]] void refuse_spent(std::string_view call);

// A node as kernels know it, to switch it from the device (ops/switch_nodes.hpp): an address that
// only the device understands.
enum class device_node : std::uint64_t { none };

// How far a stream has come in the capture it is in: `steps` works and waits of its own branch.
struct capture_place {
  std::uint64_t capture = 0;  // never used twice in a process; 0: the stream is not captured
  std::size_t branch = 0;
  std::size_t steps = 0;
};

}  // namespace reprise
