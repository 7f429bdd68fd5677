#include "reprise/cuda/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <list>

#include "reprise/cuda/calibrate.hpp"
#include "reprise/cuda/cuda_device.hpp"

namespace reprise {

std::unique_ptr<device_api> open_cuda(int ordinal) {
  const std::vector<cuda_row> rows = list_cuda_devices();
  const auto row = std::ranges::find(rows, ordinal, &cuda_row::ordinal);
  if (row != rows.end() && row->usable) return std::make_unique<cuda::cuda_device>(*row);

  std::string usable = "\"cpu\"";
  for (const cuda_row& r : rows) {
    if (r.usable) usable += fmt::format(" or \"{}\"", r.name);
  }
  std::string why = why_no_cuda();
  if (row != rows.end()) {
    why = row->why_not;
  } else if (!rows.empty()) {
    why = fmt::format("the driver shows this process {} GPU{}", rows.size(),
                      rows.size() == 1 ? "" : "s");
  }
  throw usage_error{
      fmt::format("cuda:{} cannot be opened: {}; open {} instead", ordinal, why, usable)};
}

}  // namespace reprise

namespace reprise::cuda {

namespace {

template <class Record, class Is>
std::list<Record> take_if(std::list<Record>& from, Is is) {
  std::list<Record> taken;
  for (auto at = from.begin(); at != from.end();) {
    const auto next = std::next(at);
    if (is(*at)) taken.splice(taken.end(), from, at);
    at = next;
  }
  return taken;
}

}  // namespace

// The error places of opening and closing name this file: no caller's line stands behind them.
cuda_device::cuda_device(const cuda_row& row)
    : core_{row.ordinal, row.name}, traits_{traits_of(row)} {
  const auto here = std::source_location::current();
  core_.enter("open", here);
  const relaxed_mode relaxed;
  core_.card.check(cudaFree(nullptr), "open", here);  // makes the context, or says why not
  core_.card.check(core_.fills.find(), "open", here);
}

cuda_device::~cuda_device() {
  close_all_doomed();  // whatever is captured elsewhere: nobody comes back for them
  close_departed(true);
  if (alone_ != nullptr) core_.card.report(cudaStreamDestroy(alone_), "close");
  auto executables = executables_.take_live();
  auto graphs = graphs_.take_live();
  auto events = events_.take_live();
  auto streams = streams_.take_live();
  auto blocks = core_.blocks.take_live();
  // What was borrowed is only forgotten.
  const auto is_borrowed = [](const auto& record) { return record.borrowed; };
  close_each(core_, take_if(streams, [](const auto& record) { return record.forgotten; }));
  executables.remove_if(is_borrowed);
  graphs.remove_if([](const graph_record& g) { return !g.body || g.body->borrowed; });
  auto lent = take_if(streams, is_borrowed);
  if (!lent.empty() && !core_.card.lost()) {
    // Their owner may have destroyed them; what they read of ours must be read.
    core_.card.report(cudaDeviceSynchronize(), "close");
  }
  close_each(core_, std::move(lent));
  if (const std::size_t left = core_.foreign.leave_the_rest(); left != 0) {
    report_error(
        fmt::format("{} was closed while {} graphs of others have works of Reprise in them; what "
                    "those need stays until the process ends",
                    traits_.name, left));
  }
  const bool held = !executables.empty() || !graphs.empty() || !events.empty() ||
                    !streams.empty() || !blocks.empty();
  if (held && !core_.card.lost()) {
    report_error(
        fmt::format("{} was closed while {} executables, {} graphs, {} events, {} streams "
                    "and {} blocks of memory were alive; destroy them before the device",
                    traits_.name, executables.size(), graphs.size(), events.size(), streams.size(),
                    blocks.size()));
  }
  for (stream_record& s : streams) {
    if (s.capture.load() != nullptr) abandon_capture(id_of<stream_id>(s));
  }
  close_each(core_, std::move(streams));  // first, which waits for launches in flight
  close_each(core_, std::move(executables));
  close_each(core_, std::move(graphs));
  close_each(core_, std::move(events));
  free_each(core_, blocks);
}

memory_figures cuda_device::memory(place from) {
  core_.enter("memory", from);
  memory_figures figures;
  const relaxed_mode relaxed;
  core_.card.check(cudaMemGetInfo(&figures.free, &figures.total), "memory", from);
  return figures;
}

// Relaxed around the allocation only: in a capture CUDA takes an allocation for a mistake, since
// the graph would not repeat it. Ours outlives the graph.
std::byte* cuda_device::allocate(memory_kind kind, std::size_t bytes, place from) {
  core_.enter("allocate", from);
  const std::size_t asked = std::max<std::size_t>(bytes, 1);  // CUDA gives a null block for zero
  void* block = nullptr;
  cudaError_t status = cudaSuccess;
  {
    const relaxed_mode relaxed;
    status =
        kind == memory_kind::device ? cudaMalloc(&block, asked) : cudaMallocHost(&block, asked);
  }
  auto* const begin = static_cast<std::byte*>(block);
  try {
    if (status != cudaSuccess) {
      core_.card.fail(status, {.call = "allocate",
                               .from = from,
                               .asked = bytes,
                               .of_the_device = kind == memory_kind::device});
    }
    core_.blocks.add(begin, {asked, kind});
  } catch (const out_of_memory&) {
    core_.captures.suspect(std::current_exception());
    throw;
  } catch (const std::bad_alloc&) {  // of the table's own entry
    free_block(core_, begin, kind);
    throw;
  }
  return begin;
}

void cuda_device::release(memory_kind kind, std::byte* block) noexcept {
  if (block == nullptr) return;
  switch (core_.blocks.take(block, &capture_registry::any_open)) {
    case block_table::taken::free_now: free_block(core_, block, kind); break;
    case block_table::taken::later: break;
    case block_table::taken::not_ours:
      report_error(
          fmt::format("release on {}: {} is no block of this device, or was released "
                      "already",
                      traits_.name, static_cast<const void*>(block)));
  }
}

stream_id cuda_device::create_stream(stream_priority priority, place from) {
  core_.enter("create_stream", from);
  stream_record& stream = streams_.add();
  stream.number = ++streams_made_;
  stream.made_at = from;
  stream.goes_ahead = priority == stream_priority::ahead;
  cudaError_t status = cudaSuccess;
  {
    const relaxed_mode relaxed;
    // CUDA's usual priority is its least; a lower number goes ahead.
    int least = 0;
    int greatest = 0;
    status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (status == cudaSuccess) {
      status = cudaStreamCreateWithPriority(&stream.native, cudaStreamNonBlocking,
                                            stream.goes_ahead ? greatest : least);
    }
  }
  if (status != cudaSuccess) {
    streams_.take(stream, [] { return false; });
    core_.card.fail(status, {"create_stream", from});
  }
  return id_of<stream_id>(stream);
}

// Whoever frees memory after this relies on the stream's work being done, so the wait is not put
// off when a capture is open elsewhere; only the destruction is. A stream that joined a capture and
// dies before it ends, a fork that lived in the body, is waited for when the capture is over.
void cuda_device::destroy(stream_id id) noexcept {
  if (id == stream_id::none) return;
  auto& stream = *reinterpret_cast<stream_record*>(static_cast<std::uintptr_t>(id));
  abandon_capture(id);
  const capture_state* const open = capture_of(core_, stream);
  if (open != nullptr && open->foreign() != 0) {
    // Closing it would break a capture that is not ours to end: it stays until the device closes.
    core_.captures.forget(stream);
    stream.forgotten = true;
    return;
  }
  if (open == nullptr) drain(core_, stream);
  retire(streams_, stream);
}

void cuda_device::synchronize(stream_id id, place from) {
  auto& stream = record_of<stream_record>(id, core_, "synchronize", from);
  core_.enter("synchronize", from);
  if (capture_state* capture = capture_of(core_, stream)) {
    refuse(*capture, core_.at("synchronize", from),
           "a captured stream has no work to wait for; wait after the graph was launched");
  }
  cudaError_t status = cudaSuccess;
  {
    const relaxed_mode relaxed;
    status = cudaStreamSynchronize(stream.native);
  }
  core_.card.check(status, "synchronize", from);
  free_done(stream.pending);
}

event_id cuda_device::create_event(place from) {
  core_.enter("create_event", from);
  event_record& event = events_.add();
  cudaError_t status = cudaSuccess;
  {
    const relaxed_mode relaxed;
    status = cudaEventCreateWithFlags(&event.native, cudaEventDisableTiming);
  }
  if (status != cudaSuccess) {
    events_.take(event, [] { return false; });
    core_.card.fail(status, {"create_event", from});
  }
  return id_of<event_id>(event);
}

// Nothing else is closed here: a pool destroys events while it is locked, and what dies with a
// graph may be a block of that very pool.
void cuda_device::destroy(event_id id) noexcept {
  if (id == event_id::none) return;
  auto& event = *reinterpret_cast<event_record*>(static_cast<std::uintptr_t>(id));
  close_each(core_, events_.take(event, &capture_registry::any_open));
}

bool cuda_device::finished(event_id id, place from) {
  if (!stands_for_work(id, "finished", from)) return true;
  const auto& event = record_of<event_record>(id, core_, "finished", from);
  cudaError_t status = cudaSuccess;
  {
    const relaxed_mode relaxed;
    status = cudaEventQuery(event.native);
  }
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // CUDA notes even this answer in the thread's error slot
    return false;
  }
  core_.card.check(status, "finished", from);
  return true;
}

void cuda_device::synchronize(event_id id, place from) {
  if (!stands_for_work(id, "synchronize event", from)) return;
  const auto& event = record_of<event_record>(id, core_, "synchronize event", from);
  cudaError_t status = cudaSuccess;
  {
    const relaxed_mode relaxed;
    status = cudaEventSynchronize(event.native);
  }
  core_.card.check(status, "synchronize event", from);
}

bool cuda_device::record_outside(stream_id on, event_id id, place from) {
  auto& stream = record_of<stream_record>(on, core_, "event record", from);
  auto& event = record_of<event_record>(id, core_, "event record", from);
  core_.enter("event record", from);
  bool recorded = false;
  core_.card.check(record_unless_captured(stream, event.native, recorded), "event record", from);
  if (!recorded) return false;
  event.recorded_on.store(stream.number, std::memory_order_relaxed);
  event.meaning.store(recorded_eagerly, std::memory_order_release);
  return true;
}

cudaError_t cuda_device::record_unless_captured(stream_record& stream, cudaEvent_t event,
                                                bool& recorded) noexcept {
  const std::lock_guard lock{stream.entering};
  recorded = false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const relaxed_mode relaxed;
  const cudaError_t asked = cudaStreamIsCapturing(stream.native, &status);
  if (asked != cudaSuccess || status != cudaStreamCaptureStatusNone) return asked;
  const cudaError_t done = cudaEventRecord(event, stream.native);
  recorded = done == cudaSuccess;
  return done;
}

node_id cuda_device::submit(stream_id id, const work& what) {
  auto& stream = record_of<stream_record>(id, core_, name_of(what.kind), what.place);
  core_.enter(name_of(what.kind), what.place);
  return submit_work(core_, stream, what);
}

// False: it was never recorded. Throws when it was recorded last in a capture: the host cannot wait
// for work that only a graph will do.
bool cuda_device::stands_for_work(event_id id, std::string_view call, place from) {
  const auto& event = record_of<event_record>(id, core_, call, from);
  core_.enter(call, from);
  const event_meaning meaning = event.meaning.load(std::memory_order_acquire);
  if (meaning == never_recorded) return false;
  if (meaning == recorded_eagerly) return true;
  core_.captures.with(meaning, [&](capture_state& open) {
    refuse(open, core_.at(call, from),
           "the event was recorded in a capture that is open, so nothing has run yet; ask outside "
           "the capture, of an event that is recorded there");
  });
  throw device_error{core_.at(call, from),
                     "the event was recorded last in a capture that is over, so it stands for a "
                     "place in that graph; record it on a stream behind the launch"};
}

std::size_t cuda_device::bytes_per_node(place from) {
  core_.enter("bytes_per_node", from);
  const std::lock_guard once{calibration_guard_};
  if (bytes_per_node_ == 0) {
    const relaxed_mode relaxed;
    std::size_t measured = 0;
    core_.card.check(calibrate_nodes(measured), "bytes_per_node", from);
    bytes_per_node_ = measured;
  }
  return bytes_per_node_;
}

void cuda_device::close_doomed() noexcept {
  if (capture_registry::any_open()) return;
  close_all_doomed();
  drop_foreign();
}

void cuda_device::close_all_doomed() noexcept {
  close_each(core_, streams_.take_doomed());
  depart(executables_.take_doomed());
  close_each(core_, graphs_.take_doomed());
  close_each(core_, events_.take_doomed());
  free_each(core_, core_.blocks.take_doomed());
}

}  // namespace reprise::cuda
