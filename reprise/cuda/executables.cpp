// Executables of a CUDA device: made, launched, and closed when their last launch is done.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reprise/cuda/cuda_device.hpp"

namespace reprise::cuda {

// Uploaded before anything changes a node: on a large graph, changes before the first upload leave
// every replay slower for good.
executable_id cuda_device::instantiate(graph_id id, stream_id upload_on, place from) {
  return add_executable(template_of(id, "instantiate", from), {}, upload_on, "instantiate", from);
}

// The attribute makes a node updatable and gives its handle; CUDA then allows one instantiation,
// and wants the upload before the first launch.
executable_id cuda_device::instantiate_device_driven(graph_id id, std::span<const node_id> driven,
                                                     stream_id upload_on, place from) {
  constexpr std::string_view call = "instantiate_device_driven";
  const std::shared_ptr<graph_body> body = template_of(id, call, from);
  core_.enter(call, from);
  for (const node_id node : driven) {
    const graph_op* const op = body->find(node);
    if (op == nullptr) refuse_node(call, node);
    node_kind kind = node_kind::other;
    if (op->nodes.size() == 1) core_.card.check(kind_of(op->nodes[0], kind), call, from);
    if (kind == node_kind::kernel) continue;
    throw usage_error{
        fmt::format("{}: '{}' is {}, and only single kernels are switched by kernels; leave it out",
                    call, op->label,
                    op->nodes.size() == 1 ? fmt::format("a node of kind {}", name_of(kind))
                                          : fmt::format("{} nodes", op->nodes.size()))};
  }
  std::map<node_id, cudaGraphDeviceNode_t> handles;
  body->spent = !driven.empty();
  for (const node_id node : driven) {
    cudaLaunchAttributeValue value{};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    core_.card.check(
        cudaGraphKernelNodeSetAttribute(body->find(node)->nodes[0],
                                        cudaLaunchAttributeDeviceUpdatableKernelNode, &value),
        call, from);
    handles.emplace(node, value.deviceUpdatableKernelNode.devNode);
  }
  return add_executable(body, std::move(handles), upload_on, call, from);
}

executable_id cuda_device::add_executable(const std::shared_ptr<graph_body>& body,
                                          std::map<node_id, cudaGraphDeviceNode_t> driven,
                                          stream_id upload_on, std::string_view call, place from) {
  auto& stream = record_of<stream_record>(upload_on, core_, call, from);
  core_.enter(call, from);
  if (capture_state* open = capture_of(core_, stream)) {
    refuse(*open, core_.at(call, from),
           "its upload needs a stream that is not captured; do it after the capture");
  }
  close_departed(false);
  executable_record& made = executables_.add();
  made.original = body;
  made.current = body;
  made.driven = std::move(driven);
  cudaError_t status = cudaSuccess;
  {
    const std::lock_guard reading{body->guard};
    const relaxed_mode relaxed;
    const unsigned flags =
        body->of_two_priorities ? unsigned{cudaGraphInstantiateFlagUseNodePriority} : 0U;
    status = cudaGraphInstantiate(&made.native, body->native, flags);
    if (status == cudaSuccess) status = cudaGraphUpload(made.native, stream.native);
  }
  if (status != cudaSuccess) {
    retire(executables_, made);
    core_.card.fail(status, {call, from});
  }
  made.launched_on.store(stream.number, std::memory_order_relaxed);  // the upload is work too
  return id_of<executable_id>(made);
}

device_node cuda_device::device_handle(executable_id id, node_id node, place from) {
  const auto& executable = record_of<executable_record>(id, core_, "device_handle", from);
  const auto found = executable.driven.find(node);
  if (found == executable.driven.end()) {
    throw usage_error{
        fmt::format("device_handle: node {} is not driven by the device; name it when the graph is "
                    "instantiated",
                    static_cast<std::uint64_t>(node))};
  }
  return device_node{reinterpret_cast<std::uintptr_t>(found->second)};
}

// The hot path: four loads, a lock that nobody else wants, a store and one call.
void cuda_device::launch(executable_id id, stream_id on, place from) {
  auto& executable = record_of<executable_record>(id, core_, "launch", from);
  auto& stream = record_of<stream_record>(on, core_, "launch", from);
  core_.card.require("launch", from);
  core_.card.check(make_current_once(core_.ordinal), "launch", from);
  if (capture_state* open = capture_of(core_, stream)) [[unlikely]] {
    refuse(*open, core_.at("launch", from),
           "an executable launched inside a capture would become a child graph, which can be "
           "neither toggled nor inspected; launch it outside the capture");
  }
  const std::lock_guard lock{executable.guard};
  core_.card.check(cudaGraphLaunch(executable.native, stream.native), "launch", from);
  executable.launched_on.store(stream.number, std::memory_order_relaxed);
  executable.launched = true;
}

void cuda_device::keep(executable_id id, std::shared_ptr<const void> owner) {
  auto& executable = record_of<executable_record>(id, core_, "keep", place::current());
  const std::lock_guard lock{executable.guard};
  executable.kept.keep(std::move(owner));
}

// Marks where the stream of the last launch is now, or leaves that for later where the stream is
// being captured. False: nothing is in flight, because it never ran or its stream is gone, which
// waited for it.
bool cuda_device::mark_end(executable_record& executable, passed_mark& mark) noexcept {
  const std::uint64_t number = executable.launched_on.load(std::memory_order_relaxed);
  if (number == 0 || core_.card.lost() || make_current(core_.ordinal) != cudaSuccess) return false;
  return streams_.with([&](const stream_record& s) { return s.number == number; },
                       [&](stream_record& s) {
                         cudaError_t status = cudaSuccess;
                         if (mark.event == nullptr) {
                           const relaxed_mode relaxed;
                           status = cudaEventCreateWithFlags(&mark.event, cudaEventDisableTiming);
                         }
                         if (status == cudaSuccess) {
                           status = record_unless_captured(s, mark.event, mark.recorded);
                         }
                         core_.card.report(status, "destroy executable");
                       });
}

// Whether the last launch of a destroyed executable is done. What is waited for is not captured: a
// capture that is open keeps it for later.
bool cuda_device::has_ended(executable_record& executable, bool wait) noexcept {
  passed_mark& mark = executable.last_launch;
  if (!mark.recorded && !mark_end(executable, mark)) return true;
  return mark.recorded && has_passed(core_, mark, wait);
}

void cuda_device::destroy(executable_id id) noexcept {
  if (id == executable_id::none) return;
  auto& executable = *reinterpret_cast<executable_record*>(static_cast<std::uintptr_t>(id));
  depart(executables_.take(executable, &capture_registry::any_open));
  close_doomed();
}

// Closes executables that nobody can launch any more, now or when their last launch is done.
void cuda_device::depart(std::list<executable_record> gone) noexcept {
  {
    const std::lock_guard lock{departing_guard_};
    departing_.splice(departing_.end(), gone);
  }
  close_departed(false);
}

// What is not done goes back; whoever else comes meanwhile does not wait for it here.
void cuda_device::close_departed(bool wait) noexcept {
  std::list<executable_record> looked_at;
  {
    const std::lock_guard lock{departing_guard_};
    looked_at.swap(departing_);
  }
  std::list<executable_record> done;
  for (auto at = looked_at.begin(); at != looked_at.end();) {
    const auto next = std::next(at);
    if (has_ended(*at, wait)) done.splice(done.end(), looked_at, at);
    at = next;
  }
  {
    const std::lock_guard lock{departing_guard_};
    departing_.splice(departing_.end(), looked_at);
  }
  close_each(core_, std::move(done));
}

void cuda_device::settle() noexcept {
  close_doomed();
  close_departed(true);
}

void cuda_device::close_finished() noexcept {
  close_doomed();
  close_departed(false);
}

}  // namespace reprise::cuda
