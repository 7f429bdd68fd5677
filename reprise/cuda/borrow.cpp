#include "reprise/cuda/borrow.hpp"

#include <fmt/format.h>

#include "reprise/cuda/cuda_device.hpp"

namespace reprise::cuda {

namespace {

cuda_device& cuda_of(device_ref device) {
  if (auto* const found = dynamic_cast<cuda_device*>(&device.api().innermost())) return *found;
  throw usage_error{
      fmt::format("borrow: {} is no CUDA device; open the one that the handle is of, as "
                  "cuda::current_device() names it",
                  device.name())};
}

// The capture that the stream is in, as CUDA tells it now: somebody else may have begun or ended
// one.
capture_state* find_foreign(core& shared, stream_record& stream) {
  const std::lock_guard one{shared.foreign.finding};
  capture_state* const known = stream.capture.load(std::memory_order_acquire);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  cudaGraph_t graph = nullptr;
  cudaError_t asked = make_current_once(shared.ordinal);
  if (asked == cudaSuccess) {
    asked = cudaStreamGetCaptureInfo(stream.native, &status, &number, &graph, nullptr, nullptr,
                                     nullptr);
  }
  if (asked != cudaSuccess) {
    cudaGetLastError();
    return known;
  }
  const bool open = status != cudaStreamCaptureStatusNone;
  if (known != nullptr && (known->foreign() == 0 || (open && known->foreign() == number))) {
    return known;
  }
  if (known != nullptr) {
    // He has ended it meanwhile. What its works hold goes where no lock is held.
    shared.foreign.put_aside(shared.captures.close(*known)->body());
  }
  if (status != cudaStreamCaptureStatusActive) return nullptr;
  if (capture_state* const beside = shared.captures.find_beside(number)) {
    beside->join(stream);
    return beside;
  }
  return &shared.captures.open_beside(stream, shared.foreign.add(shared, graph), number);
}

}  // namespace

capture_state* capture_of(core& shared, stream_record& stream) {
  capture_state* const own = stream.capture.load(std::memory_order_acquire);
  if (!stream.borrowed && (own == nullptr || own->foreign() == 0)) return own;
  return find_foreign(shared, stream);
}

// CUDA does not tell the device of a stream that is being captured; work for another device fails
// when it is enqueued.
void cuda_device::require_own(cudaStream_t native, place from) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  core_.card.check(cudaStreamIsCapturing(native, &status), "borrow", from);
  if (status != cudaStreamCaptureStatusNone) return;
  int ordinal = -1;
  core_.card.check(cudaStreamGetDevice(native, &ordinal), "borrow", from);
  if (ordinal == core_.ordinal) return;
  throw usage_error{
      fmt::format("borrow: the stream is of cuda:{}, the device is {}; open the stream's device",
                  ordinal, traits_.name)};
}

stream_id cuda_device::borrow(cudaStream_t native, place from) {
  core_.enter("borrow", from);
  drop_foreign();
  if (native == nullptr || native == cudaStreamLegacy || native == cudaStreamPerThread) {
    throw usage_error{
        "borrow: a default stream is shared with everybody who names none; give a stream that was "
        "created for this work"};
  }
  const std::lock_guard lock{borrowed_guard_};
  stream_id known = stream_id::none;
  streams_.with([&](const stream_record& s) { return s.borrowed && s.native == native; },
                [&](stream_record& s) { known = id_of<stream_id>(s); });
  if (known != stream_id::none) return known;
  require_own(native, from);
  return id_of<stream_id>(streams_.add([&](stream_record& stream) {
    stream.native = native;
    stream.borrowed = true;
    stream.number = ++streams_made_;
    stream.made_at = from;
  }));
}

graph_id cuda_device::borrow(cudaGraph_t native, place from) {
  core_.enter("borrow", from);
  std::shared_ptr<graph_body> body = core_.foreign.body_of(core_, native);
  const std::lock_guard lock{borrowed_guard_};
  graph_id known = graph_id::none;
  graphs_.with(
      [&](const graph_record& g) { return g.body && g.body->borrowed && g.body->native == native; },
      [&](graph_record& g) {
        g.body = body;
        known = id_of<graph_id>(g);
      });
  if (known != graph_id::none) return known;
  return id_of<graph_id>(graphs_.add([&](graph_record& graph) { graph.body = body; }));
}

executable_id cuda_device::borrow(cudaGraphExec_t native, place from) {
  core_.enter("borrow", from);
  const std::lock_guard lock{borrowed_guard_};
  executable_id known = executable_id::none;
  executables_.with([&](const executable_record& e) { return e.borrowed && e.native == native; },
                    [&](executable_record& e) { known = id_of<executable_id>(e); });
  if (known != executable_id::none) return known;
  return id_of<executable_id>(executables_.add([&](executable_record& executable) {
    executable.native = native;
    executable.borrowed = true;
  }));
}

// What the stream was given has run when it returns. False: it is not borrowed.
bool cuda_device::give_back(cudaStream_t native, stream_id& was) noexcept {
  const std::lock_guard lock{borrowed_guard_};
  was = stream_id::none;
  streams_.with([&](const stream_record& s) { return s.borrowed && s.native == native; },
                [&](stream_record& s) { was = id_of<stream_id>(s); });
  if (was == stream_id::none) return false;
  auto& stream = *reinterpret_cast<stream_record*>(static_cast<std::uintptr_t>(was));
  if (!core_.card.lost() && make_current(core_.ordinal) == cudaSuccess) {
    const relaxed_mode relaxed;
    core_.card.report(cudaStreamSynchronize(native), "give_back");
  }
  core_.captures.forget(stream);
  retire(streams_, stream);
  return true;
}

// Works in graphs of others that are gone; and borrowed graphs that were those.
void cuda_device::drop_foreign() noexcept {
  const auto gone = core_.foreign.take_gone();
  for (const std::shared_ptr<graph_body>& body : gone) {
    graphs_.with([&](const graph_record& g) { return g.body == body; },
                 [](graph_record& g) { g.body.reset(); });
  }
}

std::string current_device() {
  int ordinal = -1;
  if (cudaGetDevice(&ordinal) != cudaSuccess) {
    cudaGetLastError();
    throw usage_error{"current_device: no CUDA device answers; see `reprise doctor`"};
  }
  return fmt::format("cuda:{}", ordinal);
}

stream_ref borrow(device_ref device, cudaStream_t stream, std::source_location from) {
  const stream_id id = cuda_of(device).borrow(stream, from);
  device.state().adopt(id);
  return {device, id};
}

void give_back(device_ref device, cudaStream_t stream) {
  stream_id was = stream_id::none;
  if (cuda_of(device).give_back(stream, was)) device.state().release(was);
}

graph_ref borrow(device_ref device, cudaGraph_t graph, std::source_location from) {
  return {device, cuda_of(device).borrow(graph, from)};
}

executable_ref borrow(device_ref device, cudaGraphExec_t executable, std::source_location from) {
  return {device, cuda_of(device).borrow(executable, from)};
}

}  // namespace reprise::cuda
