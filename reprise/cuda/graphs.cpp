// Captures, graphs and executables of a CUDA device.
#include <fmt/format.h>

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
  if (capture_state* open = stream.capture.load(std::memory_order_acquire)) {
    refuse(*open, core_.at("begin_capture", from),
           fmt::format("the stream is in a capture already, begun on {}; end that one first",
                       open->origin().text()));
  }
  capture_state& opened = core_.captures.open(stream);
  const cudaError_t status =
      cudaStreamBeginCapture(stream.native, cudaStreamCaptureModeThreadLocal);
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
  const cudaError_t status = cudaStreamEndCapture(stream.native, &graph.native);
  const std::unique_ptr<capture_state> ended = core_.captures.close(*open);
  try {
    require_whole(*ended, where, status);
    core_.card.check(cudaGraphGetNodes(graph.native, nullptr, &graph.nodes), "end_capture", from);
  } catch (...) {
    retire(graphs_, graph);
    throw;
  }
  graph.functions = ended->functions();
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
  const auto& stream = *reinterpret_cast<const stream_record*>(static_cast<std::uintptr_t>(id));
  return stream.capture.load(std::memory_order_acquire) != nullptr;
}

std::size_t cuda_device::node_count(graph_id id) const {
  return record_of<graph_record>(id, core_, "node_count", place::current()).nodes;
}

void cuda_device::destroy(graph_id id) noexcept {
  if (id == graph_id::none) return;
  retire(graphs_, *reinterpret_cast<graph_record*>(static_cast<std::uintptr_t>(id)));
}

// Uploaded before anything changes a node: on a large graph, changes before the first upload leave
// every replay slower for good.
executable_id cuda_device::instantiate(graph_id id, stream_id upload_on, place from) {
  const auto& graph = record_of<graph_record>(id, core_, "instantiate", from);
  auto& stream = record_of<stream_record>(upload_on, core_, "instantiate", from);
  core_.enter("instantiate", from);
  if (capture_state* open = stream.capture.load(std::memory_order_acquire)) {
    refuse(*open, core_.at("instantiate", from),
           "its upload needs a stream that is not captured; do it after the capture");
  }
  executable_record& made = executables_.add();
  made.functions = graph.functions;
  cudaError_t status = cudaSuccess;
  {
    const relaxed_mode relaxed;
    status = cudaGraphInstantiate(&made.native, graph.native, 0);
    if (status == cudaSuccess) status = cudaGraphUpload(made.native, stream.native);
  }
  if (status != cudaSuccess) {
    retire(executables_, made);
    core_.card.fail(status, {"instantiate", from});
  }
  return id_of<executable_id>(made);
}

// The hot path: three loads and one call.
void cuda_device::launch(executable_id id, stream_id on, place from) {
  const auto& executable = record_of<executable_record>(id, core_, "launch", from);
  auto& stream = record_of<stream_record>(on, core_, "launch", from);
  core_.card.require("launch", from);
  if (capture_state* open = stream.capture.load(std::memory_order_acquire)) [[unlikely]] {
    refuse(*open, core_.at("launch", from),
           "an executable launched inside a capture would become a child graph, which can be "
           "neither toggled nor inspected; launch it outside the capture");
  }
  core_.card.check(make_current_once(core_.ordinal), "launch", from);
  core_.card.check(cudaGraphLaunch(executable.native, stream.native), "launch", from);
}

void cuda_device::destroy(executable_id id) noexcept {
  if (id == executable_id::none) return;
  retire(executables_, *reinterpret_cast<executable_record*>(static_cast<std::uintptr_t>(id)));
}

}  // namespace reprise::cuda
