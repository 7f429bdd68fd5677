// Changes of an executable: nodes switched, given other parameters, and whole updates.
//
// CUDA names the nodes of an executable by those of the graph that it was instantiated from, keeps
// a node switched off over changes of its parameters, and takes changes while launches are in
// flight: they count from the next launch on. Where the driver does not keep that, the change is
// made to another executable (renewal.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/cuda/call.cuh"
#include "reprise/cuda/changes.hpp"
#include "reprise/cuda/cuda_device.hpp"

namespace reprise::cuda {

namespace {

// The template whose nodes name those of the executable: its own, or somebody else's in which the
// work was enqueued through Reprise.
std::shared_ptr<const graph_body> template_with(core& shared, const executable_record& executable,
                                                node_id node, std::string_view call) {
  std::shared_ptr<const graph_body> body =
      executable.borrowed ? shared.foreign.find(node) : executable.original;
  if (body == nullptr || body->find(node) == nullptr) refuse_node(call, node);
  return body;
}

void require_host_driven(const executable_record& executable, std::string_view call) {
  if (!executable.driven.empty()) refuse_driven(call);
}

[[noreturn]] void refuse_borrowed(std::string_view call) {
  throw usage_error{
      fmt::format("{}: the executable is somebody else's, who may change the same node; change it "
                  "where it is owned",
                  call)};
}

cudaError_t switch_op(cudaGraphExec_t executable, const graph_op& op, bool on) {
  for (const cudaGraphNode_t node : op.nodes) {
    const cudaError_t status = cudaGraphNodeSetEnabled(executable, node, on ? 1 : 0);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

cudaError_t change_kernel(cudaGraphExec_t executable, const graph_op& op, const graph_op& fresh) {
  for (std::size_t i = 0; i != op.nodes.size(); ++i) {
    // The arguments belong to the driver, with the node that they are asked of: only read here.
    cudaKernelNodeParams parameters{};
    cudaError_t status = cudaGraphKernelNodeGetParams(fresh.nodes[i], &parameters);
    if (status != cudaSuccess) return status;
    status = cudaGraphExecKernelNodeSetParams(executable, op.nodes[i], &parameters);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

cudaError_t change_fill(cudaGraphExec_t executable, cudaGraphNode_t node, const fill_call& fill) {
  cudaMemsetParams parameters{};
  parameters.dst = fill.to;
  parameters.elementSize = fill.pattern_bytes;
  parameters.width = fill.bytes / fill.pattern_bytes;
  parameters.height = 1;
  parameters.value = fill.pattern;
  return cudaGraphExecMemsetNodeSetParams(executable, node, &parameters);
}

cudaError_t apply(cudaGraphExec_t executable, const graph_op& op, const node_change& change) {
  if (change.kernel != nullptr) {
    return change_kernel(executable, op, change.kernel->ops.front());
  }
  if (change.copy.bytes != 0) {
    return cudaGraphExecMemcpyNodeSetParams1D(executable, op.nodes.front(), change.copy.to,
                                              change.copy.from, change.copy.bytes,
                                              cudaMemcpyDefault);
  }
  return change_fill(executable, op.nodes.front(), change.fill);
}

}  // namespace

cudaError_t apply_changes(cudaGraphExec_t native, const executable_record& executable) {
  for (const auto& [node, change] : executable.changes) {
    const cudaError_t status = apply(native, *executable.original->find(node), change);
    if (status != cudaSuccess) return status;
  }
  for (const node_id node : executable.disabled) {
    const cudaError_t status = switch_op(native, *executable.original->find(node), false);
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

void cuda_device::enable(executable_id id, node_id node, bool on, place from) {
  auto& executable = record_of<executable_record>(id, core_, "enable", from);
  core_.enter("enable", from);
  const std::lock_guard lock{executable.guard};
  require_host_driven(executable, "enable");
  const auto body = template_with(core_, executable, node, "enable");
  const graph_op& op = *body->find(node);
  if (!executable.switchable.contains(node)) {
    const std::lock_guard reading{body->guard};
    require_toggle(core_, "enable", op);
    executable.switchable.insert(node);
  }
  renew_if_in_flight(executable, "enable", from);
  const relaxed_mode relaxed;
  core_.card.check(switch_op(executable.native, op, on), "enable", from);
  if (on) {
    executable.disabled.erase(node);
  } else {
    executable.disabled.insert(node);
  }
}

void cuda_device::set_parameters(executable_id id, node_id node, const work& what) {
  constexpr std::string_view call = "set_parameters";
  auto& executable = record_of<executable_record>(id, core_, call, what.place);
  core_.enter(call, what.place);
  const std::lock_guard lock{executable.guard};
  require_host_driven(executable, call);
  if (executable.borrowed) refuse_borrowed(call);
  const auto body = template_with(core_, executable, node, call);
  const graph_op& op = *body->find(node);
  if (what.kind == work_kind::fill && !well_formed(what.fill)) {
    throw device_error{core_.at(call, what.place),
                       "the pattern must have 1, 2 or 4 bytes, fit the length a whole number of "
                       "times, and its target must be aligned to it"};
  }
  node_change change;
  switch (what.kind) {
    case work_kind::kernel: change.kernel = record_alone(what); break;
    case work_kind::copy: change.copy = what.copy; break;
    case work_kind::fill: change.fill = shortened(what.fill); break;
    default: break;
  }
  require_same_kind(op, change, what);
  renew_if_in_flight(executable, call, what.place);
  const relaxed_mode relaxed;
  cudaError_t status = apply(executable.native, op, change);
  if (what.kind == work_kind::copy) executable.copies_host_memory = true;  // perhaps
  if (status == cudaSuccess && executable.disabled.contains(node)) {
    status = switch_op(executable.native, op, false);
  }
  core_.card.check(status, call, what.place);
  executable.changes.insert_or_assign(node, std::move(change));
}

// A kernel, copy or fill keeps its kind, and a kernel its number of nodes.
void cuda_device::require_same_kind(const graph_op& op, const node_change& change,
                                    const work& what) {
  const node_kind expected = what.kind == work_kind::kernel ? node_kind::kernel
                             : what.kind == work_kind::copy ? node_kind::copy
                             : what.kind == work_kind::fill ? node_kind::fill
                                                            : node_kind::other;
  const std::size_t count = change.kernel != nullptr ? change.kernel->ops.front().nodes.size() : 1;
  bool same = can_be_toggled(expected) && op.nodes.size() == count && count != 0;
  for (const cudaGraphNode_t native : op.nodes) {
    node_kind kind{};
    core_.card.check(kind_of(native, kind), "set_parameters", what.place);
    same = same && kind == expected;
  }
  if (same) {
    if (what.kind == work_kind::copy) require_no_pageable_side(what);
    return;
  }
  throw usage_error{
      fmt::format("set_parameters: '{}' was recorded as another kind or number of nodes than {} "
                  "'{}' becomes; a kernel, copy or fill keeps its kind",
                  op.label, name_of(what.kind), what.label)};
}

void cuda_device::require_no_pageable_side(const work& what) {
  for (const std::byte* side : {static_cast<const std::byte*>(what.copy.to), what.copy.from}) {
    if (core_.blocks.find(side)) continue;
    cudaPointerAttributes attributes{};
    const relaxed_mode relaxed;
    core_.card.check(cudaPointerGetAttributes(&attributes, side), "set_parameters", what.place);
    if (attributes.type != cudaMemoryTypeUnregistered) continue;
    throw device_error{core_.at("set_parameters", what.place),
                       "one side is pageable host memory, which may be gone at the replay; use a "
                       "pinned buffer or a buffer of the device"};
  }
}

// A graph of this launch alone, whose nodes own a copy of its arguments.
std::shared_ptr<graph_body> cuda_device::record_alone(const work& what) {
  const std::lock_guard one{alone_guard_};
  const auto check = [&](cudaError_t status) {
    core_.card.check(status, "set_parameters", what.place);
  };
  const relaxed_mode relaxed;
  if (alone_ == nullptr) {
    check(cudaStreamCreateWithFlags(&alone_, cudaStreamNonBlocking));
  }
  auto body = std::make_shared<graph_body>(core_);
  check(cudaStreamBeginCapture(alone_, cudaStreamCaptureModeRelaxed));
  try {
    cudaGetLastError();  // what others left behind is not blamed on this kernel
    cuda_call call{alone_, what.kernel.workspace};
    what.kernel.invoke(&call, what.kernel.arguments);
    check(cudaGetLastError());
    graph_op op{next_node(), std::string{what.label}, {}};
    std::vector<cudaGraphNode_t> tail;
    check(tail_of(alone_, tail));
    check(fresh_nodes({}, tail, op.nodes));
    body->ops.push_back(std::move(op));
  } catch (...) {
    cudaStreamEndCapture(alone_, &body->native);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(alone_, &body->native));
  return body;
}

// CUDA rewrites every node, those that were changed or switched off here too. What it does to an
// executable whose update it refuses is not said, so the old parameters are given again.
bool cuda_device::update(executable_id id, graph_id graph, place from) {
  auto& executable = record_of<executable_record>(id, core_, "update", from);
  const std::shared_ptr<graph_body> body = template_of(graph, "update", from);
  core_.enter("update", from);
  const std::lock_guard lock{executable.guard};
  require_host_driven(executable, "update");
  if (executable.borrowed) refuse_borrowed("update");
  renew_if_in_flight(executable, "update", from);
  executable.copies_host_memory.reset();
  const std::lock_guard reading{body->guard};
  const relaxed_mode relaxed;
  cudaGraphExecUpdateResultInfo info{};
  cudaError_t status = cudaGraphExecUpdate(executable.native, body->native, &info);
  const bool refused = status == cudaErrorGraphExecUpdateFailure;
  if (refused) {
    cudaGetLastError();
    status = cudaGraphExecUpdate(executable.native, executable.current->native, &info);
  }
  if (status == cudaSuccess && !refused) {
    set_aside(executable);
    executable.current = body;  // from here on its functions are called, whatever fails below
  }
  if (status == cudaSuccess) status = apply_changes(executable.native, executable);
  core_.card.check(status, "update", from);
  return !refused;
}

// Launches in flight may still call functions of the graph that is replaced.
void cuda_device::set_aside(executable_record& executable) {
  std::erase_if(executable.earlier, [&](auto& entry) {
    if (!entry.first.recorded && mark_end(executable, entry.first)) return false;
    if (entry.first.recorded && !has_passed(core_, entry.first, false)) return false;
    close(core_, entry.first);
    return true;
  });
  if (executable.current == executable.original) return;  // held anyway
  passed_mark mark;
  if (mark_end(executable, mark)) {
    executable.earlier.emplace_back(mark, std::move(executable.current));
  }
}

}  // namespace reprise::cuda
