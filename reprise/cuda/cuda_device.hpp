// The seam over the CUDA runtime: one card, in this process. For this room's .cpp files.
//
//   device.cpp   opening and closing, memory, streams, events
//   graphs.cpp   captures, graphs, executables
//   submit.cpp   the door for all enqueued work
//
// Every call makes the card current for the calling thread. Nothing locks on the way of a launch or
// of eager work, but for a copy's look at the table of blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "reprise/cuda/closing.hpp"
#include "reprise/cuda/core.hpp"
#include "reprise/cuda/device.hpp"
#include "reprise/device/api.hpp"

namespace reprise::cuda {

class cuda_device final : public device_api {
 public:
  explicit cuda_device(const cuda_row& row);
  ~cuda_device() override;
  cuda_device(const cuda_device&) = delete;
  cuda_device& operator=(const cuda_device&) = delete;

  const device_traits& traits() const override { return traits_; }
  memory_figures memory(place from) override;
  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override;
  void release(memory_kind kind, std::byte* block) noexcept override;

  stream_id create_stream(place from) override;
  void destroy(stream_id stream) noexcept override;
  void synchronize(stream_id stream, place from) override;

  event_id create_event(place from) override;
  void destroy(event_id event) noexcept override;
  bool finished(event_id event, place from) override;
  void synchronize(event_id event, place from) override;

  void submit(stream_id stream, const work& what) override;

  void begin_capture(stream_id stream, place from) override;
  graph_id end_capture(stream_id stream, place from) override;
  void abandon_capture(stream_id stream) noexcept override;
  bool capturing(stream_id stream) const override;

  std::size_t node_count(graph_id graph) const override;
  void destroy(graph_id graph) noexcept override;
  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override;
  void launch(executable_id executable, stream_id stream, place from) override;
  void destroy(executable_id executable) noexcept override;

 private:
  void require_whole(const capture_state& ended, const call_place& where, cudaError_t status);
  bool stands_for_work(event_id event, std::string_view call, place from);
  // Ends a record now, or when no capture is open any more.
  template <class Record>
  void retire(shelf<Record>& shelf, Record& record) noexcept {
    close_each(core_, shelf.take(record, &capture_registry::any_open));
    close_doomed();
  }
  void close_doomed() noexcept;
  void close_all_doomed() noexcept;

  core core_;
  device_traits traits_;
  std::atomic<std::uint64_t> streams_made_{0};
  shelf<stream_record> streams_;
  shelf<event_record> events_;
  shelf<graph_record> graphs_;
  shelf<executable_record> executables_;
};

}  // namespace reprise::cuda
