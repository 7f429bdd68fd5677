#include "reprise/cuda/closing.hpp"

namespace reprise::cuda {

namespace {

// One CUDA call that may not throw. Relaxed: a capture of another stream may be open on this
// thread.
template <class Call>
void quietly(core& shared, std::string_view name, Call&& call) noexcept {
  if (shared.card.lost()) return;
  cudaError_t status = make_current(shared.ordinal);
  if (status == cudaSuccess) {
    const relaxed_mode relaxed;
    status = call();
  }
  shared.card.report(status, name);
}

}  // namespace

void drain(core& shared, stream_record& stream) noexcept {
  if (stream.borrowed) return;  // its owner may have destroyed it
  quietly(shared, "destroy stream", [&] { return cudaStreamSynchronize(stream.native); });
}

void close(core& shared, stream_record& stream) noexcept {
  drain(shared, stream);
  quietly(shared, "destroy stream", [&] {
    stream.staging.free();
    return stream.borrowed ? cudaSuccess : cudaStreamDestroy(stream.native);
  });
  // The driver may still hold their addresses: better a leak than a call into freed memory.
  if (shared.card.lost() && !stream.pending.empty()) {
    new host_functions{std::move(stream.pending)};
  }
}

void close(core& shared, event_record& event) noexcept {
  quietly(shared, "destroy event", [&] { return cudaEventDestroy(event.native); });
}

// The last holder of the template destroys it.
void close(core&, graph_record& graph) noexcept {
  graph.body.reset();
}

void close(core& shared, passed_mark& mark) noexcept {
  if (mark.event == nullptr) return;
  quietly(shared, "destroy event", [&] { return cudaEventDestroy(mark.event); });
  mark.event = nullptr;
}

bool has_passed(core& shared, passed_mark& mark, bool wait) noexcept {
  if (mark.event == nullptr || shared.card.lost()) return true;
  cudaError_t status = cudaSuccess;
  quietly(shared, "query event", [&] {
    status = wait ? cudaEventSynchronize(mark.event) : cudaEventQuery(mark.event);
    if (status != cudaErrorNotReady) return status;
    cudaGetLastError();
    return cudaSuccess;
  });
  return status == cudaSuccess || shared.card.lost();
}

void close(core& shared, executable_record& executable) noexcept {
  close(shared, executable.last_launch);
  for (auto& [mark, body] : executable.earlier) close(shared, mark);
  if (executable.native == nullptr || executable.borrowed) return;
  quietly(shared, "destroy executable", [&] { return cudaGraphExecDestroy(executable.native); });
}

void free_block(core& shared, const std::byte* block, memory_kind kind) noexcept {
  void* const begin = const_cast<std::byte*>(block);
  quietly(shared, "release",
          [&] { return kind == memory_kind::device ? cudaFree(begin) : cudaFreeHost(begin); });
}

}  // namespace reprise::cuda
