// A template: the native graph, which works became which of its nodes, and what it owns on the
// host. For this room's .cpp files.
//
// Shared by the graph's id and by every executable of it: CUDA names an executable's nodes by those
// of its template, so the template lives as long as they do. The last of them lets go where no
// capture is open, and then the native graph is destroyed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "reprise/cuda/host_function.hpp"
#include "reprise/device/node.hpp"

namespace reprise::cuda {

struct core;

// One work and the nodes it became, those that come first first.
struct graph_op {
  node_id id = node_id::none;
  std::string label;
  std::vector<cudaGraphNode_t> nodes;
};

// Owners that something holds, each once.
class kept_owners {
 public:
  void keep(std::shared_ptr<const void> owner);

 private:
  std::vector<std::shared_ptr<const void>> all_;
};

struct graph_body {
  explicit graph_body(core& device) : shared{device} {}
  ~graph_body();
  graph_body(const graph_body&) = delete;
  graph_body& operator=(const graph_body&) = delete;

  // Null: no work of this graph has that id.
  const graph_op* find(node_id id) const;

  core& shared;
  mutable std::mutex guard;  // CUDA takes one call on a graph at a time, questions included
  cudaGraph_t native = nullptr;
  bool borrowed = false;           // somebody else destroys the native graph
  bool spent = false;              // instantiated with device-driven nodes
  bool of_two_priorities = false;  // its nodes keep those of the streams they were captured on
  std::vector<graph_op> ops;       // ascending by id, the order of capture
  host_functions functions;        // their addresses are in host nodes
  kept_owners kept;
  std::shared_ptr<const graph_body> parent;  // of a clone, which shares its functions
};

cudaError_t kind_of(cudaGraphNode_t node, node_kind& kind);

// The nodes of a graph in CUDA's order.
cudaError_t nodes_of(cudaGraph_t graph, std::vector<cudaGraphNode_t>& nodes);

// The nodes from which a captured stream goes on.
cudaError_t tail_of(cudaStream_t captured, std::vector<cudaGraphNode_t>& tail,
                    cudaGraph_t* graph = nullptr);

// The nodes that one work became, dependencies first: what lies before `tail` and was not known.
using node_set = std::unordered_set<cudaGraphNode_t>;
cudaError_t fresh_nodes(const node_set& known, std::span<const cudaGraphNode_t> tail,
                        std::vector<cudaGraphNode_t>& fresh);

// Ties what comes before `node` to what comes after it and destroys it. Edges that exist are left
// alone: CUDA refuses a second one and then adds none of that call, so each is added by itself.
cudaError_t bridge_and_destroy(cudaGraph_t graph, cudaGraphNode_t node);

// Throws usage_error, naming the work, unless all of its nodes can be switched off and taken out:
// of the right kind, and without an edge that is more than "after it is done", as a programmatic
// launch makes. The capture is over.
void require_toggle(core& shared, std::string_view call, const graph_op& op);

}  // namespace reprise::cuda
