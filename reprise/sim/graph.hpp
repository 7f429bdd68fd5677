// Graphs and executables of a simulated device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/api.hpp"
#include "reprise/device/node.hpp"
#include "reprise/sim/stored_work.hpp"

namespace reprise::sim {

// Owners that a graph holds, each once.
class kept_owners {
 public:
  void keep(std::shared_ptr<const void> owner);

 private:
  std::vector<std::shared_ptr<const void>> all_;
};

// What a pool did with a block at some place of a graph; every launch does it again.
struct stored_note {
  block_change change;
  std::byte* begin;
  std::size_t bytes;
  std::string pool;
  std::source_location place;
};

// A template: nodes in the order they were captured, which is one that their edges allow.
//
// A device that watches memory also has places in it: nodes without a work, for the beginning and
// for each wait, so that every step of the capture is a node that notes can stand behind. Nobody
// outside this room sees them.
struct graph_body : kept_owners {
  struct node {
    node_id id;
    std::shared_ptr<const stored_work> what;  // null: a place
    std::vector<std::size_t> after;           // indices of its direct predecessors
    std::vector<stored_note> notes;           // done behind the work
    std::uint64_t captured_on = 0;            // the number of the stream, for people
  };

  std::vector<node> nodes;

  std::size_t index_of(node_id id, std::string_view call) const;  // throws usage_error
  std::vector<std::size_t> works() const;  // the indices of nodes that are no places
  std::vector<node_row> rows() const;
  // Of each work, its direct predecessors among the works, sorted; by ordinals of works.
  std::vector<std::vector<std::size_t>> topology() const;
  // Without some nodes: what came before them comes before what came after.
  graph_body without(std::span<const node_id> gone) const;

 private:
  // Of each node that stays, its predecessors among those, by ordinals; those left out pass on what
  // came before them.
  template <class Stays>
  std::vector<std::vector<std::size_t>> ties_among(Stays&& stays) const;
};

node_kind kind_of(const work& what);

// One node of a launch: what it runs with, and after which others.
struct launched_node {
  std::shared_ptr<const stored_work> what;  // null: a place, or switched off
  const graph_body::node* from = nullptr;
  const std::uint8_t* driven_by = nullptr;  // read when it runs; null: not driven by kernels
};

// One instance of a graph. It keeps the graph that it took its parameters from. Calls are taken one
// by one.
class executable_body : public kept_owners {
 public:
  executable_body(std::shared_ptr<const graph_body> from, std::span<const node_id> driven);

  // All nodes in order, on the calling thread.
  void run(worker_ref workers);
  // As they are now; alive while the executable is, and `holder` too.
  std::vector<launched_node> as_launched(std::shared_ptr<const graph_body>& holder);

  void enable(node_id node, bool on);
  void set_parameters(node_id node, const work& what);
  bool update(std::shared_ptr<const graph_body> from);
  device_node handle(node_id node) const;
  void keep(std::shared_ptr<const void> owner);

 private:
  void require_host_driven(std::string_view call) const;
  // By the ordinal of the work.
  std::size_t ordinal_of(node_id node, std::string_view call) const;
  work recorded(std::size_t ordinal) const;
  const std::shared_ptr<const stored_work>& what_runs(std::size_t ordinal) const;

  std::mutex guard_;
  const std::shared_ptr<const graph_body> original_;  // whose ids name the nodes
  const std::vector<std::size_t> works_;              // of the original
  std::shared_ptr<const graph_body> current_;         // whose parameters they have
  std::vector<std::size_t> current_works_;
  std::map<std::size_t, std::shared_ptr<const stored_work>> changed_;
  std::vector<std::uint8_t> enabled_;  // kernels write it for driven nodes
  std::vector<node_id> driven_;
};

}  // namespace reprise::sim
