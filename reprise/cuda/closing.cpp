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
  quietly(shared, "destroy stream", [&] { return cudaStreamSynchronize(stream.native); });
}

void close(core& shared, stream_record& stream) noexcept {
  drain(shared, stream);
  quietly(shared, "destroy stream", [&] {
    stream.staging.free();
    return cudaStreamDestroy(stream.native);
  });
  // The driver may still hold their addresses: better a leak than a call into freed memory.
  if (shared.card.lost() && !stream.pending.empty()) {
    new host_functions{std::move(stream.pending)};
  }
}

void close(core& shared, event_record& event) noexcept {
  quietly(shared, "destroy event", [&] { return cudaEventDestroy(event.native); });
}

void close(core& shared, graph_record& graph) noexcept {
  if (graph.native == nullptr) return;  // of a capture that failed
  quietly(shared, "destroy graph", [&] { return cudaGraphDestroy(graph.native); });
}

void close(core& shared, executable_record& executable) noexcept {
  if (executable.native == nullptr) return;
  quietly(shared, "destroy executable", [&] { return cudaGraphExecDestroy(executable.native); });
}

void free_block(core& shared, const std::byte* block, memory_kind kind) noexcept {
  void* const begin = const_cast<std::byte*>(block);
  quietly(shared, "release",
          [&] { return kind == memory_kind::device ? cudaFree(begin) : cudaFreeHost(begin); });
}

}  // namespace reprise::cuda
