#include "reprise/cuda/graph_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "reprise/cuda/core.hpp"

namespace reprise::cuda {

namespace {

using node_list = std::vector<cudaGraphNode_t>;
using edge_list = std::vector<cudaGraphEdgeData>;

// CUDA tells the number first and fills in at the second call.
cudaError_t predecessors_of(cudaGraphNode_t node, node_list& nodes, edge_list& edges) {
  std::size_t count = 0;
  cudaError_t status = cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count);
  if (status != cudaSuccess) return status;
  nodes.resize(count);
  edges.resize(count);
  if (count == 0) return cudaSuccess;
  return cudaGraphNodeGetDependencies(node, nodes.data(), edges.data(), &count);
}

cudaError_t successors_of(cudaGraphNode_t node, node_list& nodes, edge_list& edges) {
  std::size_t count = 0;
  cudaError_t status = cudaGraphNodeGetDependentNodes(node, nullptr, nullptr, &count);
  if (status != cudaSuccess) return status;
  nodes.resize(count);
  edges.resize(count);
  if (count == 0) return cudaSuccess;
  return cudaGraphNodeGetDependentNodes(node, nodes.data(), edges.data(), &count);
}

bool contains(std::span<const cudaGraphNode_t> nodes, cudaGraphNode_t node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

bool is_programmatic(const cudaGraphEdgeData& edge) {
  return edge.from_port != 0 || edge.to_port != 0 || edge.type != 0;
}

}  // namespace

void kept_owners::keep(std::shared_ptr<const void> owner) {
  if (std::ranges::find(all_, owner) == all_.end()) all_.push_back(std::move(owner));
}

graph_body::~graph_body() {
  if (shared.card.lost() && !functions.empty()) {
    // The driver may still hold their addresses: better a leak than a call into freed memory.
    new host_functions{std::move(functions)};
  }
  if (native == nullptr || borrowed || shared.card.lost()) return;
  cudaError_t status = make_current(shared.ordinal);
  if (status == cudaSuccess) {
    const relaxed_mode relaxed;
    status = cudaGraphDestroy(native);
  }
  shared.card.report(status, "destroy graph");
}

const graph_op* graph_body::find(node_id id) const {
  const auto found = std::ranges::lower_bound(ops, id, {}, &graph_op::id);
  return found != ops.end() && found->id == id ? &*found : nullptr;
}

cudaError_t kind_of(cudaGraphNode_t node, node_kind& kind) {
  cudaGraphNodeType type{};
  const cudaError_t status = cudaGraphNodeGetType(node, &type);
  switch (type) {
    case cudaGraphNodeTypeKernel: kind = node_kind::kernel; break;
    case cudaGraphNodeTypeMemcpy: kind = node_kind::copy; break;
    case cudaGraphNodeTypeMemset: kind = node_kind::fill; break;
    case cudaGraphNodeTypeHost: kind = node_kind::host_call; break;
    case cudaGraphNodeTypeEmpty: kind = node_kind::empty; break;
    default: kind = node_kind::other;
  }
  return status;
}

cudaError_t nodes_of(cudaGraph_t graph, node_list& nodes) {
  std::size_t count = 0;
  cudaError_t status = cudaGraphGetNodes(graph, nullptr, &count);
  if (status != cudaSuccess) return status;
  nodes.resize(count);
  return count == 0 ? cudaSuccess : cudaGraphGetNodes(graph, nodes.data(), &count);
}

cudaError_t tail_of(cudaStream_t captured, node_list& tail, cudaGraph_t* graph) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  std::size_t count = 0;
  const cudaError_t status =
      cudaStreamGetCaptureInfo(captured, &capturing, nullptr, graph, &nodes, &edges, &count);
  if (status != cudaSuccess) return status;
  tail.assign(nodes, nodes + count);
  return cudaSuccess;
}

cudaError_t fresh_nodes(const node_set& known, std::span<const cudaGraphNode_t> tail,
                        node_list& fresh) {
  struct frame {
    cudaGraphNode_t node;
    node_list predecessors;
    std::size_t next = 0;
  };
  node_list seen;
  edge_list edges;
  std::vector<frame> path;
  const auto is_old = [&](cudaGraphNode_t node) {
    return known.contains(node) || contains(seen, node);
  };
  const auto enter = [&](cudaGraphNode_t node) {
    seen.push_back(node);
    path.push_back({node, {}, 0});
    return predecessors_of(node, path.back().predecessors, edges);
  };
  for (const cudaGraphNode_t end : tail) {
    if (is_old(end)) continue;
    if (const cudaError_t status = enter(end); status != cudaSuccess) return status;
    while (!path.empty()) {
      frame& top = path.back();
      if (top.next == top.predecessors.size()) {
        fresh.push_back(top.node);
        path.pop_back();
        continue;
      }
      const cudaGraphNode_t earlier = top.predecessors[top.next++];
      if (is_old(earlier)) continue;
      if (const cudaError_t status = enter(earlier); status != cudaSuccess) return status;
    }
  }
  return cudaSuccess;
}

cudaError_t bridge_and_destroy(cudaGraph_t graph, cudaGraphNode_t node) {
  node_list before, after, known;
  edge_list edges;
  cudaError_t status = predecessors_of(node, before, edges);
  if (status == cudaSuccess) status = successors_of(node, after, edges);
  for (const cudaGraphNode_t later : after) {
    if (status == cudaSuccess) status = predecessors_of(later, known, edges);
    for (const cudaGraphNode_t earlier : before) {
      if (status != cudaSuccess) return status;
      if (contains(known, earlier)) continue;
      status = cudaGraphAddDependencies(graph, &earlier, &later, nullptr, 1);
    }
  }
  return status == cudaSuccess ? cudaGraphDestroyNode(node) : status;
}

namespace {

cudaError_t has_programmatic_edge(cudaGraphNode_t node, bool& has) {
  node_list nodes;
  edge_list edges;
  cudaError_t status = predecessors_of(node, nodes, edges);
  has = std::ranges::any_of(edges, is_programmatic);
  if (status != cudaSuccess || has) return status;
  status = successors_of(node, nodes, edges);
  has = std::ranges::any_of(edges, is_programmatic);
  return status;
}

}  // namespace

void require_toggle(core& shared, std::string_view call, const graph_op& op) {
  const auto here = std::source_location::current();
  for (const cudaGraphNode_t node : op.nodes) {
    node_kind kind{};
    bool programmatic = false;
    shared.card.check(kind_of(node, kind), call, here);
    reprise::require_toggle(call, op.label, kind);
    shared.card.check(has_programmatic_edge(node, programmatic), call, here);
    if (!programmatic) continue;
    throw usage_error{fmt::format(
        "{}: '{}' has an edge of a programmatic launch, behind which a kernel waits for "
        "a grid that must come; launch it and its neighbours without one",
        call, op.label)};
  }
}

}  // namespace reprise::cuda
