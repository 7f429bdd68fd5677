#include "reprise/cuda/foreign.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "reprise/cuda/core.hpp"

namespace reprise::cuda {

namespace {

using flag = std::shared_ptr<std::atomic<bool>>;

// CUDA calls it when the last graph or executable that holds the object is gone. No CUDA call is
// allowed there, so the body is dropped later.
void note_gone(void* context) {
  const std::unique_ptr<flag> gone{static_cast<flag*>(context)};
  (*gone)->store(true, std::memory_order_release);
}

cudaError_t attach(cudaGraph_t graph, const flag& gone) {
  auto context = std::make_unique<flag>(gone);
  cudaUserObject_t object = nullptr;
  cudaError_t status =
      cudaUserObjectCreate(&object, context.get(), &note_gone, 1, cudaUserObjectNoDestructorSync);
  if (status != cudaSuccess) return status;
  (void)context.release();  // the object's now
  status = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
  if (status != cudaSuccess) cudaUserObjectRelease(object, 1);
  return status;
}

}  // namespace

std::shared_ptr<graph_body> foreign_graphs::add(core& shared, cudaGraph_t captured) {
  auto body = std::make_shared<graph_body>(shared);
  body->native = captured;
  body->borrowed = true;
  auto gone = std::make_shared<std::atomic<bool>>(false);
  shared.card.check(attach(captured, gone), "borrow", std::source_location::current());
  const std::lock_guard lock{guard_};
  all_.emplace(captured, entry{body, std::move(gone)});
  return body;
}

std::shared_ptr<graph_body> foreign_graphs::body_of(core& shared, cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> nodes;
  shared.card.check(nodes_of(graph, nodes), "borrow", std::source_location::current());
  const auto is_here = [&](const graph_op& op) {
    return std::ranges::all_of(op.nodes, [&](cudaGraphNode_t node) {
      return std::ranges::find(nodes, node) != nodes.end();
    });
  };
  const std::lock_guard lock{guard_};
  const auto [first, last] = all_.equal_range(graph);
  for (auto at = first; at != last; ++at) {
    const std::lock_guard ops{at->second.body->guard};
    if (std::ranges::all_of(at->second.body->ops, is_here)) return at->second.body;
  }
  auto body = std::make_shared<graph_body>(shared);
  body->native = graph;
  body->borrowed = true;
  return body;
}

std::shared_ptr<const graph_body> foreign_graphs::find(node_id node) {
  const std::lock_guard lock{guard_};
  for (const auto& [graph, known] : all_) {
    const std::lock_guard ops{known.body->guard};
    if (known.body->find(node) != nullptr) return known.body;
  }
  return nullptr;
}

std::vector<std::shared_ptr<graph_body>> foreign_graphs::take_gone() {
  std::vector<std::shared_ptr<graph_body>> gone;
  const std::lock_guard lock{guard_};
  gone.swap(aside_);
  std::erase_if(all_, [&](auto& known) {
    if (!known.second.gone->load(std::memory_order_acquire)) return false;
    gone.push_back(known.second.body);
    return true;
  });
  return gone;
}

void foreign_graphs::put_aside(std::shared_ptr<graph_body> body) {
  const std::lock_guard lock{guard_};
  aside_.push_back(std::move(body));
}

std::size_t foreign_graphs::leave_the_rest() {
  const std::lock_guard lock{guard_};
  const std::size_t count = all_.size();
  if (count != 0) new std::multimap<cudaGraph_t, entry>{std::exchange(all_, {})};
  return count;
}

}  // namespace reprise::cuda
