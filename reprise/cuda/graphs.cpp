// Captures and graphs of a CUDA device.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "reprise/cuda/cuda_device.hpp"

namespace reprise::cuda {

namespace {

constexpr std::string_view fork_remedy =
    "record an event on it behind its last work and wait for that on the captured stream";

std::string names_of(const std::vector<const stream_record*>& streams) {
  std::string text;
  for (const stream_record* s : streams) text += (text.empty() ? "" : ", ") + s->text();
  return text;
}

}  // namespace

// Thread-local: other threads may allocate, query and synchronise as they like meanwhile. CUDA
// therefore wants the end on this thread.
void cuda_device::begin_capture(stream_id id, place from) {
  auto& stream = record_of<stream_record>(id, core_, "begin_capture", from);
  core_.enter("begin_capture", from);
  if (capture_state* open = capture_of(core_, stream)) {
    refuse(*open, core_.at("begin_capture", from),
           fmt::format("the stream is in a capture already, begun on {}; end that one first",
                       open->origin().text()));
  }
  capture_state& opened = core_.captures.open(core_, stream);
  cudaError_t status = cudaSuccess;
  {
    const std::lock_guard lock{stream.entering};
    status = cudaStreamBeginCapture(stream.native, cudaStreamCaptureModeThreadLocal);
  }
  if (status != cudaSuccess) {
    core_.captures.close(opened);
    core_.card.fail(status, {.call = "begin_capture", .from = from, .captured = true});
  }
}

graph_id cuda_device::end_capture(stream_id id, place from) {
  auto& stream = record_of<stream_record>(id, core_, "end_capture", from);
  core_.enter("end_capture", from);
  capture_state* const open = stream.capture.load(std::memory_order_acquire);
  const call_place where = core_.at("end_capture", from);
  if (open == nullptr) throw capture_error{where, "no capture was begun on this stream"};
  if (&open->origin() != &stream) {
    refuse(*open, where,
           fmt::format("the stream only joined a capture, which was begun on {}; end "
                       "it there",
                       open->origin().text()));
  }
  if (!open->began_here()) {
    throw capture_error{where,
                        "the capture was begun by another thread, and CUDA lets only that "
                        "one end it; nothing was changed"};
  }

  graph_record& graph = graphs_.add();
  graph.body = open->body();
  graph.body->of_two_priorities = open->of_two_priorities();
  const cudaError_t status = cudaStreamEndCapture(stream.native, &graph.body->native);
  const std::unique_ptr<capture_state> ended = core_.captures.close(*open);
  try {
    require_whole(*ended, where, status);
  } catch (...) {
    retire(graphs_, graph);
    throw;
  }
  close_doomed();
  return id_of<graph_id>(graph);
}

// The capture is over; throws unless its graph is what the body meant.
void cuda_device::require_whole(const capture_state& ended, const call_place& where,
                                cudaError_t status) {
  const failing_call call{.call = where.call, .from = where.from, .captured = true};
  if (loses_the_device(status)) core_.card.fail(status, call);
  if (status != cudaSuccess) cudaGetLastError();

  if (const std::exception_ptr cause = ended.cause()) {
    try {
      std::rethrow_exception(cause);
    } catch (const out_of_memory&) {
      throw;  // what the caller can act on stays what it is
    } catch (...) {
    }
    throw capture_error{where, "the capture was made invalid by: " + text_of(cause)};
  }
  if (const auto left = ended.unjoined(); !left.empty()) {
    throw capture_error{
        where, fmt::format("{} was forked and not joined; {}", names_of(left), fork_remedy)};
  }
  if (status == cudaSuccess) return;
  if (const std::exception_ptr suspicion = ended.suspicion()) std::rethrow_exception(suspicion);
  if (status == cudaErrorStreamCaptureUnjoined) {
    const std::string joined = ended.joined_text();
    throw capture_error{where, fmt::format("a fork was not joined: {}; {}",
                                           joined.empty() ? "of a stream that is not Reprise's"
                                                          : "one of " + joined,
                                           fork_remedy)};
  }
  core_.card.fail(status, call);
}

void cuda_device::abandon_capture(stream_id id) noexcept {
  if (id == stream_id::none) return;
  auto& stream = *reinterpret_cast<stream_record*>(static_cast<std::uintptr_t>(id));
  capture_state* const open = stream.capture.load(std::memory_order_acquire);
  if (open == nullptr || &open->origin() != &stream) return;
  if (!open->began_here()) {
    report_error(
        fmt::format("abandon_capture on {} failed: the capture on {} was begun by another "
                    "thread, and CUDA lets only that one end it; the stream stays captured",
                    traits_.name, stream.text()));
    return;
  }
  cudaGraph_t partial = nullptr;
  if (!core_.card.lost() && make_current(core_.ordinal) == cudaSuccess) {
    const cudaError_t status = cudaStreamEndCapture(stream.native, &partial);
    if (loses_the_device(status)) core_.card.report(status, "abandon_capture");
    cudaGetLastError();  // that the capture was broken is no news to whoever abandons it
  }
  const std::unique_ptr<capture_state> ended = core_.captures.close(*open);
  if (partial != nullptr) {
    const relaxed_mode relaxed;
    core_.card.report(cudaGraphDestroy(partial), "abandon_capture");
  }
  close_doomed();
}

bool cuda_device::capturing(stream_id id) const {
  if (id == stream_id::none) return false;
  auto& stream = *reinterpret_cast<stream_record*>(static_cast<std::uintptr_t>(id));
  return capture_of(core_, stream) != nullptr;
}

capture_place cuda_device::place_in_capture(stream_id id) const {
  if (id == stream_id::none) return {};
  auto& stream = *reinterpret_cast<stream_record*>(static_cast<std::uintptr_t>(id));
  capture_state* const open = capture_of(core_, stream);
  return open != nullptr ? open->place_of(stream) : capture_place{};
}

bool cuda_device::precedes(const capture_place& earlier, stream_id id) const {
  if (id == stream_id::none) return false;
  auto& stream = *reinterpret_cast<stream_record*>(static_cast<std::uintptr_t>(id));
  const capture_state* const open = capture_of(core_, stream);
  return open != nullptr && open->precedes(earlier, stream);
}

void cuda_device::keep(stream_id id, std::shared_ptr<const void> owner) {
  auto& stream = record_of<stream_record>(id, core_, "keep", place::current());
  if (capture_state* const open = capture_of(core_, stream)) open->keep(std::move(owner));
}

std::shared_ptr<graph_body> cuda_device::body_of(graph_id id, std::string_view call,
                                                 place from) const {
  const auto& graph = record_of<graph_record>(id, core_, call, from);
  if (graph.body != nullptr) return graph.body;
  throw device_error{core_.at(call, from), "the graph was somebody else's, who has destroyed it"};
}

// What was instantiated with driven nodes is no template any more.
std::shared_ptr<graph_body> cuda_device::template_of(graph_id id, std::string_view call,
                                                     place from) const {
  std::shared_ptr<graph_body> body = body_of(id, call, from);
  if (body->spent) refuse_spent(call);
  return body;
}

std::vector<node_row> cuda_device::nodes(graph_id id, place from) const {
  const std::shared_ptr<graph_body> body = body_of(id, "nodes", from);
  const std::lock_guard lock{body->guard};
  std::vector<cudaGraphNode_t> natives;
  core_.enter("nodes", from);
  core_.card.check(nodes_of(body->native, natives), "nodes", from);
  std::unordered_map<cudaGraphNode_t, const graph_op*> owners;
  for (const graph_op& op : body->ops) {
    for (const cudaGraphNode_t node : op.nodes) owners.emplace(node, &op);
  }
  std::vector<node_row> rows;
  for (const cudaGraphNode_t node : natives) {
    node_row& row = rows.emplace_back();
    core_.card.check(kind_of(node, row.kind), "nodes", from);
    if (const auto owner = owners.find(node); owner != owners.end()) {
      row.id = owner->second->id;
      row.label = owner->second->label;
    }
  }
  return rows;
}

graph_id cuda_device::clone_without(graph_id id, std::span<const node_id> gone, place from) {
  constexpr std::string_view call = "clone_without";
  const std::shared_ptr<graph_body> body = template_of(id, call, from);
  const std::lock_guard lock{body->guard};
  core_.enter(call, from);
  const auto check = [&](cudaError_t status) { core_.card.check(status, call, from); };
  for (const node_id node : gone) {
    const graph_op* const op = body->find(node);
    if (op == nullptr) refuse_node(call, node);
    require_toggle(core_, call, *op);
  }

  graph_record& graph = graphs_.add();
  try {
    graph.body = std::make_shared<graph_body>(core_);
    graph.body->parent = body;
    graph.body->of_two_priorities = body->of_two_priorities;
    const relaxed_mode relaxed;
    check(cudaGraphClone(&graph.body->native, body->native));
    for (const graph_op& op : body->ops) {
      graph_op copied{op.id, op.label, op.nodes};
      for (cudaGraphNode_t& node : copied.nodes) {
        check(cudaGraphNodeFindInClone(&node, node, graph.body->native));
      }
      if (std::ranges::find(gone, op.id) == gone.end()) {
        graph.body->ops.push_back(std::move(copied));
        continue;
      }
      for (const cudaGraphNode_t node : copied.nodes) {
        check(bridge_and_destroy(graph.body->native, node));
      }
    }
  } catch (...) {
    retire(graphs_, graph);
    throw;
  }
  return id_of<graph_id>(graph);
}

void cuda_device::destroy(graph_id id) noexcept {
  if (id == graph_id::none) return;
  retire(graphs_, *reinterpret_cast<graph_record*>(static_cast<std::uintptr_t>(id)));
}

}  // namespace reprise::cuda
