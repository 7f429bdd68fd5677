// The seam over the CUDA runtime: one card, in this process. For this room's .cpp files.
//
//   device.cpp       opening and closing, memory, streams, events
//   submit.cpp       the door for all enqueued work
//   graphs.cpp       captures and graphs
//   executables.cpp  instantiation, launches, the end of an executable
//   changes.cpp      nodes switched, other parameters, whole updates
//   borrow.cpp       streams, graphs and executables of others
//
// Every call makes the card current for the calling thread. On the way of a launch an executable's
// own lock is taken, and of eager work none, but for a copy's look at the table of blocks; work on
// a borrowed stream asks CUDA first what its owner does with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

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

  stream_id create_stream(stream_priority priority, place from) override;
  void destroy(stream_id stream) noexcept override;
  void synchronize(stream_id stream, place from) override;

  event_id create_event(place from) override;
  void destroy(event_id event) noexcept override;
  bool finished(event_id event, place from) override;
  void synchronize(event_id event, place from) override;
  bool record_outside(stream_id stream, event_id event, place from) override;

  node_id submit(stream_id stream, const work& what) override;

  void begin_capture(stream_id stream, place from) override;
  graph_id end_capture(stream_id stream, place from) override;
  void abandon_capture(stream_id stream) noexcept override;
  bool capturing(stream_id stream) const override;
  capture_place place_in_capture(stream_id stream) const override;
  bool precedes(const capture_place& earlier, stream_id stream) const override;
  void keep(stream_id captured, std::shared_ptr<const void> owner) override;

  std::vector<node_row> nodes(graph_id graph, place from) const override;
  graph_id clone_without(graph_id graph, std::span<const node_id> gone, place from) override;
  void destroy(graph_id graph) noexcept override;

  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override;
  executable_id instantiate_device_driven(graph_id graph, std::span<const node_id> driven,
                                          stream_id upload_on, place from) override;
  device_node device_handle(executable_id executable, node_id node, place from) override;
  void launch(executable_id executable, stream_id stream, place from) override;
  void enable(executable_id executable, node_id node, bool on, place from) override;
  void set_parameters(executable_id executable, node_id node, const work& what) override;
  bool update(executable_id executable, graph_id graph, place from) override;
  void keep(executable_id executable, std::shared_ptr<const void> owner) override;
  void destroy(executable_id executable) noexcept override;

  void settle() noexcept override;
  void close_finished() noexcept override;
  std::size_t bytes_per_node(place from) override;

  // Of others; the same id for the same handle.
  stream_id borrow(cudaStream_t native, place from);
  graph_id borrow(cudaGraph_t native, place from);
  executable_id borrow(cudaGraphExec_t native, place from);
  bool give_back(cudaStream_t native, stream_id& was) noexcept;

 private:
  void require_whole(const capture_state& ended, const call_place& where, cudaError_t status);
  bool stands_for_work(event_id event, std::string_view call, place from);
  std::shared_ptr<graph_body> body_of(graph_id id, std::string_view call, place from) const;
  std::shared_ptr<graph_body> template_of(graph_id id, std::string_view call, place from) const;

  executable_id add_executable(const std::shared_ptr<graph_body>& body,
                               std::map<node_id, cudaGraphDeviceNode_t> driven, stream_id upload_on,
                               std::string_view call, place from);
  std::shared_ptr<graph_body> record_alone(const work& what);
  void require_same_kind(const graph_op& op, const node_change& change, const work& what);
  void require_no_pageable_side(const work& what);
  void set_aside(executable_record& executable);
  // Ahead of a change: no launch of what is changed is in flight, where that matters (renewal.cpp).
  void renew_if_in_flight(executable_record& executable, std::string_view call, place from);
  bool mark_end(executable_record& executable, passed_mark& mark) noexcept;
  bool has_ended(executable_record& executable, bool wait) noexcept;
  cudaError_t record_unless_captured(stream_record& stream, cudaEvent_t event,
                                     bool& recorded) noexcept;
  void depart(std::list<executable_record> gone) noexcept;
  void close_departed(bool wait) noexcept;

  // Ends a record now, or when no capture is open any more.
  template <class Record>
  void retire(shelf<Record>& shelf, Record& record) noexcept {
    close_each(core_, shelf.take(record, &capture_registry::any_open));
    close_doomed();
  }
  void require_own(cudaStream_t native, place from);
  void close_doomed() noexcept;
  void close_all_doomed() noexcept;
  void drop_foreign() noexcept;

  mutable core core_;  // asking CUDA about a borrowed stream may note what it says
  device_traits traits_;
  std::atomic<std::uint64_t> streams_made_{0};
  shelf<stream_record> streams_;
  shelf<event_record> events_;
  shelf<graph_record> graphs_;
  shelf<executable_record> executables_;

  std::mutex departing_guard_;
  std::list<executable_record> departing_;  // destroyed, with a launch that may be in flight

  std::mutex alone_guard_;
  cudaStream_t alone_ = nullptr;  // where launches are recorded alone, for their arguments

  std::mutex borrowed_guard_;
  std::mutex calibration_guard_;
  std::size_t bytes_per_node_ = 0;
};

}  // namespace reprise::cuda
