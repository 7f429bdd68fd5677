#include "reprise/cuda/closing.hpp"

namespace reprise::cuda {

namespace {

// Whether CUDA is to be called at all.
bool enter(core& shared, std::string_view call) noexcept {
  if (shared.card.lost()) return false;
  const cudaError_t status = make_current(shared.ordinal);
  shared.card.report(status, call);
  return status == cudaSuccess;
}

}  // namespace

void drain(core& shared, stream_record& stream) noexcept {
  if (!enter(shared, "destroy stream")) return;
  const relaxed_mode relaxed;  // a capture may be open on this thread, on another stream
  shared.card.report(cudaStreamSynchronize(stream.native), "destroy stream");
}

void close(core& shared, stream_record& stream) noexcept {
  drain(shared, stream);
  if (shared.card.lost()) {
    // The driver may still hold their addresses: better a leak than a call into freed memory.
    if (!stream.pending.empty()) new host_functions{std::move(stream.pending)};
    return;
  }
  stream.staging.free();
  shared.card.report(cudaStreamDestroy(stream.native), "destroy stream");
}

void close(core& shared, event_record& event) noexcept {
  if (!enter(shared, "destroy event")) return;
  shared.card.report(cudaEventDestroy(event.native), "destroy event");
}

void close(core& shared, graph_record& graph) noexcept {
  if (graph.native == nullptr || !enter(shared, "destroy graph")) return;
  shared.card.report(cudaGraphDestroy(graph.native), "destroy graph");
}

void close(core& shared, executable_record& executable) noexcept {
  if (executable.native == nullptr || !enter(shared, "destroy executable")) return;
  shared.card.report(cudaGraphExecDestroy(executable.native), "destroy executable");
}

void free_block(core& shared, const std::byte* block, memory_kind kind) noexcept {
  if (!enter(shared, "release")) return;
  void* const begin = const_cast<std::byte*>(block);
  shared.card.report(kind == memory_kind::device ? cudaFree(begin) : cudaFreeHost(begin),
                     "release");
}

}  // namespace reprise::cuda
