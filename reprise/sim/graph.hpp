// Graphs and executables of a simulated device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

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

// A template: nodes in the order they were captured, which is one that their edges allow.
struct graph_body : kept_owners {
  struct node {
    node_id id;
    std::shared_ptr<const stored_work> what;
    std::vector<std::size_t> after;  // indices of its direct predecessors
  };

  std::vector<node> nodes;

  std::size_t index_of(node_id id, std::string_view call) const;  // throws usage_error
  std::vector<node_row> rows() const;
  // Without some nodes: what came before them comes before what came after.
  graph_body without(std::span<const node_id> gone) const;
};

node_kind kind_of(const work& what);

// One instance of a graph. It keeps the graph that it took its parameters from. Calls are taken one
// by one, a launch included: in this device a launch is over when its call returns.
class executable_body : public kept_owners {
 public:
  executable_body(std::shared_ptr<const graph_body> from, std::span<const node_id> driven);

  void run(worker_ref workers);
  void enable(node_id node, bool on);
  void set_parameters(node_id node, const work& what);
  bool update(std::shared_ptr<const graph_body> from);
  device_node handle(node_id node) const;
  void keep(std::shared_ptr<const void> owner);

 private:
  void require_host_driven(std::string_view call) const;

  std::mutex guard_;
  const std::shared_ptr<const graph_body> original_;  // whose ids name the nodes
  std::shared_ptr<const graph_body> current_;         // whose parameters they have
  std::map<std::size_t, std::shared_ptr<const stored_work>> changed_;
  std::vector<std::uint8_t> enabled_;  // by node; kernels write it for driven nodes
  std::vector<node_id> driven_;
};

}  // namespace reprise::sim
