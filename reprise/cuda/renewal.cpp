// Executables that are made anew, since they are to be changed while a launch is in flight.
//
// CUDA says that a change counts from the next launch on and leaves launches in flight alone. The
// driver does not keep that of graphs that copy from or to host memory: where several processes
// share the card, the context is lost with cudaErrorLaunchFailure. CUDA calls alone show it (driver
// 580.159.04 on an H200; a fill, two copies and a copy to pinned memory; launched, its fill
// switched off, launched, switched on, launched): 13 of 48 processes, four at a time. Of the same
// program with a wait before each change: none of 48; without the copy to the host: none; without
// the changes: none. A wait would hold the host for as long as the stream is held, and rule 10 says
// that changes wait for nothing, so the change is made to a fresh executable of the same graph.
#include <utility>

#include "reprise/cuda/changes.hpp"
#include "reprise/cuda/closing.hpp"
#include "reprise/cuda/cuda_device.hpp"

namespace reprise::cuda {

namespace {

bool is_host_memory(const void* at) {
  cudaPointerAttributes attributes{};
  const bool known = at != nullptr && cudaPointerGetAttributes(&attributes, at) == cudaSuccess;
  if (at != nullptr && !known) cudaGetLastError();
  return known && attributes.type != cudaMemoryTypeDevice;
}

cudaError_t look_for_host_copies(const graph_body& body, bool& found) {
  const std::lock_guard reading{body.guard};
  found = false;
  std::vector<cudaGraphNode_t> nodes;
  cudaError_t status = nodes_of(body.native, nodes);
  for (std::size_t i = 0; status == cudaSuccess && !found && i != nodes.size(); ++i) {
    node_kind kind{};
    status = kind_of(nodes[i], kind);
    if (status != cudaSuccess || kind != node_kind::copy) continue;
    cudaMemcpy3DParms copied{};
    status = cudaGraphMemcpyNodeGetParams(nodes[i], &copied);
    found = is_host_memory(copied.srcPtr.ptr) || is_host_memory(copied.dstPtr.ptr);
  }
  return status;
}

// Uploaded before anything is changed in it, and the upload is done: the next launch is on any
// stream.
cudaError_t make_anew(const executable_record& executable, cudaStream_t alone,
                      cudaGraphExec_t& made) {
  const graph_body& original = *executable.original;
  const unsigned flags =
      original.of_two_priorities ? unsigned{cudaGraphInstantiateFlagUseNodePriority} : 0U;
  cudaError_t status = cudaSuccess;
  {
    const std::lock_guard reading{original.guard};
    status = cudaGraphInstantiate(&made, original.native, flags);
  }
  if (status == cudaSuccess) status = cudaGraphUpload(made, alone);
  if (status == cudaSuccess) status = cudaStreamSynchronize(alone);
  if (status == cudaSuccess && executable.current != executable.original) {
    const std::lock_guard reading{executable.current->guard};
    cudaGraphExecUpdateResultInfo info{};
    status = cudaGraphExecUpdate(made, executable.current->native, &info);
  }
  return status == cudaSuccess ? apply_changes(made, executable) : status;
}

}  // namespace

void cuda_device::renew_if_in_flight(executable_record& executable, std::string_view call,
                                     place from) {
  if (!executable.launched || executable.borrowed) return;
  const relaxed_mode relaxed;
  if (!executable.copies_host_memory) {
    bool found = false;
    core_.card.check(look_for_host_copies(*executable.current, found), call, from);
    executable.copies_host_memory = found;
  }
  if (!*executable.copies_host_memory) return;
  passed_mark end;
  const bool may_run = mark_end(executable, end);
  if (!may_run || (end.recorded && has_passed(core_, end, false))) {
    close(core_, end);
    executable.launched = false;
    return;
  }
  cudaGraphExec_t fresh = nullptr;
  cudaError_t status = cudaSuccess;
  {
    const std::lock_guard one{alone_guard_};
    if (alone_ == nullptr) status = cudaStreamCreateWithFlags(&alone_, cudaStreamNonBlocking);
    if (status == cudaSuccess) status = make_anew(executable, alone_, fresh);
  }
  if (status != cudaSuccess) {
    if (fresh != nullptr) cudaGraphExecDestroy(fresh);
    close(core_, end);
    core_.card.check(status, call, from);
  }
  std::list<executable_record> was;
  executable_record& old = was.emplace_back();
  old.native = std::exchange(executable.native, fresh);
  old.original = executable.original;
  old.current = executable.current;
  old.kept = executable.kept;
  old.launched_on.store(executable.launched_on.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
  old.last_launch = end;
  executable.launched = false;
  depart(std::move(was));
}

}  // namespace reprise::cuda
