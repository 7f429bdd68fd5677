// The door for all enqueued work: eager on a stream, or recorded into the capture it is in.
//
// Each kind becomes one CUDA call, except a copy that has a pageable side. Errors name the work by
// kind and label. What fails inside a capture makes the capture invalid, user code's own exceptions
// included: the body did not do what it meant to.
#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <vector>

#include "reprise/cuda/call.cuh"
#include "reprise/cuda/core.hpp"

namespace reprise::cuda {

namespace {

// Where the bytes of one side of a copy lie.
enum class residence : std::uint8_t { device, pinned, pageable };

// "kernel 'rms_norm'", and plain "copy" where the label says nothing more.
std::string call_text(const work& what) {
  const std::string_view kind = name_of(what.kind);
  if (what.label.empty() || what.label == kind) return std::string{kind};
  return fmt::format("{} '{}'", kind, what.label);
}

// One work on its way in.
class passage {
 public:
  passage(core& shared, stream_record& stream, const work& what, capture_state* capture)
      : shared_{shared}, stream_{stream}, what_{what}, capture_{capture} {}

  node_id enter() {
    switch (what_.kind) {
      case work_kind::kernel: return kernel();
      case work_kind::copy: return copy();
      case work_kind::fill: return fill();
      case work_kind::host_call: return host_call();
      case work_kind::empty: return empty();
      case work_kind::external: return external();
      case work_kind::event_record: record(); break;
      case work_kind::event_wait: wait(); break;
    }
    return node_id::none;
  }

 private:
  // A body launches with <<<>>>, which answers nothing: launch errors wait in the thread's error
  // slot. An error that was there before is someone else's and is not blamed on this kernel.
  node_id kernel() {
    clear_error_slot();
    cuda_call call{stream_.native, what_.kernel.workspace};
    what_.kernel.invoke(&call, what_.kernel.arguments);
    check(cudaGetLastError());
    return added_by_others();
  }

  node_id external() {
    struct look_after {
      ~look_after() { look_at_current_device(); }
    };
    clear_error_slot();
    {
      const look_after also_when_it_throws;
      (*what_.on_stream)(stream_.native);
    }
    check(cudaGetLastError());
    if (capture_ != nullptr && still_captured()) refuse_forbidden();
    return added_by_others();
  }

  // A graph with one of these can be instantiated once and not cloned, which CUDA tells at the
  // instantiation, long after, as "invalid argument".
  void refuse_forbidden() {
    const std::string_view kind = capture_->forbidden_at(stream_);
    if (kind.empty()) return;
    refuse(
        fmt::format("it recorded a node of kind {}, which a graph that is instantiated, cloned "
                    "and updated cannot hold; take memory from a pool before it, and leave "
                    "conditions to the host",
                    kind));
  }

  node_id copy() {
    const copy_call& c = what_.copy;
    if (c.bytes == 0) return node_id::none;
    if (c.to == nullptr || c.from == nullptr) refuse("one side is a null pointer");
    const residence to = residence_of(c.to);
    const residence from = residence_of(c.from);
    if (to != residence::pageable && from != residence::pageable) {
      check(cudaMemcpyAsync(c.to, c.from, c.bytes, cudaMemcpyDefault, stream_.native));
      return added();
    }
    if (capture_ != nullptr) {
      refuse(
          fmt::format("its {} ({}) is pageable host memory, which may be gone or changed at the "
                      "replay; copy through a pinned buffer",
                      from == residence::pageable ? "source" : "destination",
                      static_cast<const void*>(from == residence::pageable ? c.from : c.to)));
    }
    pageable_copy(to, from);
    return node_id::none;
  }

  void pageable_copy(residence to, residence from) {
    const copy_call& c = what_.copy;
    if (to != residence::pageable) {
      return check(stream_.staging.upload(c.to, c.from, c.bytes, stream_.native),
                   staging_ring::total_bytes);
    }
    if (from != residence::pageable) {
      return check(stream_.staging.download(c.to, c.from, c.bytes, stream_.native),
                   staging_ring::total_bytes);
    }
    // Both sides are the host's own: its turn in the stream is after what is enqueued now.
    {
      const relaxed_mode relaxed;
      check(cudaStreamSynchronize(stream_.native));
    }
    std::memmove(c.to, c.from, c.bytes);
  }

  node_id fill() {
    if (what_.fill.bytes == 0) return node_id::none;
    if (!well_formed(what_.fill)) {
      refuse(
          "the pattern must have 1, 2 or 4 bytes, fit the length a whole number of times, and "
          "its target must be aligned to it");
    }
    if (residence_of(what_.fill.to) == residence::pageable) {
      refuse(
          "the target is pageable host memory, which the device does not write; fill it on the "
          "host");
    }
    check(shared_.fills.run(what_.fill, stream_.native));
    return added();
  }

  // A node of its own between what the stream did and what it will do.
  node_id empty() {
    if (capture_ == nullptr) return node_id::none;
    std::vector<cudaGraphNode_t> tail;
    cudaGraph_t graph = nullptr;
    check(tail_of(stream_.native, tail, &graph));
    cudaGraphNode_t node = nullptr;
    check(cudaGraphAddEmptyNode(&node, graph, tail.data(), tail.size()));
    check(cudaStreamUpdateCaptureDependencies(stream_.native, &node, nullptr, 1,
                                              cudaStreamSetCaptureDependencies));
    return added();
  }

  node_id host_call() {
    if (capture_ != nullptr) {
      host_function& kept = capture_->keep(what_.label, *what_.on_host);
      check(launch_host_function(stream_.native, kept));
      return added();
    }
    free_done(stream_.pending);
    stream_.pending.emplace_back(what_.label, *what_.on_host);
    const cudaError_t status = launch_host_function(stream_.native, stream_.pending.back());
    if (status != cudaSuccess) stream_.pending.pop_back();
    check(status);
    return node_id::none;
  }

  void record() {
    auto& event = this->event();
    check(cudaEventRecord(event.native, stream_.native));
    if (capture_ != nullptr) capture_->record(event, stream_);
    event.recorded_on.store(stream_.number, std::memory_order_relaxed);
    event.meaning.store(capture_ != nullptr ? capture_->number() : recorded_eagerly,
                        std::memory_order_release);
  }

  void wait() {
    auto& event = this->event();
    const event_meaning meaning = event.meaning.load(std::memory_order_acquire);
    if (capture_ != nullptr) {
      if (meaning != capture_->number()) refuse(outside_text(event, meaning));
      check(cudaStreamWaitEvent(stream_.native, event.native, 0));
      capture_->wait(event, stream_);
      return;
    }
    if (meaning == never_recorded) return;
    if (meaning == recorded_eagerly) {
      return check(cudaStreamWaitEvent(stream_.native, event.native, 0));
    }
    const bool open = shared_.captures.with(meaning, [&](capture_state& forked_from) {
      const std::lock_guard lock{stream_.entering};
      check(cudaStreamWaitEvent(stream_.native, event.native, 0));
      forked_from.wait(event, stream_);  // from here on this stream is captured
    });
    if (!open) {
      refuse(
          "the event was recorded last in a capture that is over, so the wait would order "
          "nothing; record it on a stream behind the launch");
    }
  }

  // CUDA would refuse such a wait too, without saying which, and break the capture.
  std::string outside_text(const event_record& event, event_meaning meaning) const {
    const std::string inside = capture_->origin().text();
    if (meaning == never_recorded) {
      return fmt::format(
          "the event was never recorded, so the capture on {} would lose the wait; "
          "record it in the capture first",
          inside);
    }
    return fmt::format(
        "the event was recorded last on stream {}, outside the capture on {}, and a "
        "graph cannot wait for that; wait before the capture begins, or before each "
        "launch",
        event.recorded_on.load(std::memory_order_relaxed), inside);
  }

  event_record& event() const {
    return record_of<event_record>(what_.event, shared_, name_of(what_.kind), what_.place);
  }

  // Our own blocks by the table; others' memory by asking CUDA, which answers inside a capture too
  // but may count the question as unsafe.
  residence residence_of(const std::byte* address) {
    if (const auto kind = shared_.blocks.find(address)) {
      return *kind == memory_kind::device ? residence::device : residence::pinned;
    }
    cudaPointerAttributes attributes{};
    cudaError_t status = cudaSuccess;
    {
      const relaxed_mode relaxed;
      status = cudaPointerGetAttributes(&attributes, address);
    }
    check(status);
    switch (attributes.type) {
      case cudaMemoryTypeUnregistered: return residence::pageable;
      case cudaMemoryTypeHost: return residence::pinned;
      default: return residence::device;  // managed memory is copied as the device's
    }
  }

  void clear_error_slot() {
    const cudaError_t stale = cudaGetLastError();
    if (loses_the_device(stale)) check(stale);
  }

  node_id added() {
    return capture_ != nullptr ? capture_->add_work(stream_, what_.label) : node_id::none;
  }

  // Code that is not ours may have called what cannot be captured; CUDA then breaks the capture and
  // tells only the next caller.
  node_id added_by_others() {
    if (capture_ == nullptr) return node_id::none;
    if (!still_captured()) {
      refuse("it made a call that cannot be captured, and CUDA broke the capture");
    }
    return added();
  }

  bool still_captured() {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream_.native, &status));
    return status == cudaStreamCaptureStatusActive;
  }

  void check(cudaError_t status, std::size_t asked = 0) {
    if (status == cudaSuccess) [[likely]] {
      return;
    }
    const std::string call = call_text(what_);
    shared_.card.fail(status, {.call = call,
                               .from = what_.place,
                               .captured = capture_ != nullptr,
                               .asked = asked,
                               .of_the_device = asked == 0});
  }

  [[noreturn]] void refuse(std::string_view why) const {
    const std::string call = call_text(what_);
    const call_place where = shared_.at(call, what_.place);
    if (capture_ != nullptr) throw capture_error{where, why};
    throw device_error{where, why};
  }

  core& shared_;
  stream_record& stream_;
  const work& what_;
  capture_state* capture_;  // null: runs eagerly
};

}  // namespace

node_id submit_work(core& shared, stream_record& stream, const work& what) {
  capture_state* const capture = capture_of(shared, stream);
  passage through{shared, stream, what, capture};
  if (capture == nullptr) return through.enter();
  if (const std::exception_ptr cause = capture->cause()) {
    const std::string call = call_text(what);
    throw capture_error{shared.at(call, what.place),
                        "the capture was made invalid by: " + text_of(cause)};
  }
  try {
    capture->pass_over_others(stream);
    return through.enter();
  } catch (...) {
    capture->fail(std::current_exception());
    throw;
  }
}

}  // namespace reprise::cuda
