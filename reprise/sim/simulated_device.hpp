// The calls of the seam, and the rules of captures and graphs. How work runs is the engine's.
// Handles are numbers that are never used twice, so a dead one is found.
//
//   calls.cpp         memory, streams, events, the door for all enqueued work
//   graph_calls.cpp   captures, graphs, executables
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/api.hpp"
#include "reprise/sim/capture.hpp"
#include "reprise/sim/engine.hpp"
#include "reprise/sim/graph.hpp"

namespace reprise::sim {

class simulated_device : public device_api {
 public:
  simulated_device(device_traits traits, std::unique_ptr<engine> runs);
  const device_traits& traits() const override { return traits_; }
  memory_figures memory(place) override;
  std::byte* allocate(memory_kind, std::size_t bytes, place from) override;
  void release(memory_kind kind, std::byte* block) noexcept override {
    engine_->release(kind, block);
  }
  host_scheduler* threads() override { return engine_->threads(); }
  void note(stream_id, const block_note&) noexcept override;
  void acquired(const std::byte* word) noexcept override { engine_->acquired(word); }

  stream_id create_stream(stream_priority priority, place from) override;
  void destroy(stream_id stream) noexcept override;
  void synchronize(stream_id stream, place from) override;

  event_id create_event(place) override;
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

  void settle() noexcept override { engine_->settle(); }
  void close_finished() noexcept override { engine_->close_finished(); }

  std::size_t bytes_per_node(place) override;

 protected:
  // The capture that the stream is in is invalid from now on.
  void spoil(stream_id stream, std::string_view cause);
  void set_global_captures(bool on) { global_captures_ = on; }
  // What is still there, for a device that is being closed: "2 streams, 1 graph"; empty: nothing.
  std::string held_text() const;

 private:
  using capture_map = std::unordered_map<stream_id, std::unique_ptr<capture>>;

  struct stream_state {
    std::uint64_t number = 0;  // for people
    place made_at;
    capture* open = nullptr;  // null: not captured
  };
  struct graph_state {
    std::shared_ptr<const graph_body> body;
    bool spent = false;  // instantiated with driven nodes
  };
  // What an event stands for: nothing yet, a point of a stream, or a point of a capture.
  struct event_state {
    enum : std::uint8_t { never, eagerly, captured } recorded = never;
    std::uint64_t capture_number = 0;
    std::uint64_t stream_number = 0;
  };

  call_place at(std::string_view call, place from) const { return {call, traits_.name, from}; }
  capture* capture_of(stream_id stream, std::string_view call, place from) const;

  std::shared_ptr<const graph_body> graph_of(graph_id graph, std::string_view call,
                                             place from) const;
  const graph_state& find_graph(graph_id graph, std::string_view call, place from) const;
  std::shared_ptr<executable_body> executable_of(executable_id executable, std::string_view call,
                                                 place from) const;
  const std::shared_ptr<executable_body>& find_executable(executable_id executable,
                                                          std::string_view call, place from) const;
  executable_id add_executable(graph_id graph, std::span<const node_id> driven, stream_id upload_on,
                               std::string_view call, place from);

  void enter(std::string_view call, place from);
  std::string text_of(stream_id stream) const;
  static std::string spoiled_text(const capture& open);
  [[noreturn]] void refuse_in_capture(capture& open, std::string_view call, std::string_view why,
                                      place from) const;
  [[noreturn]] void refuse(capture* open, std::string_view call, std::string_view why,
                           place from) const;

  event_state& state_of(event_id event, std::string_view call, place from);
  capture* open_capture_of(const event_state& event) const;
  void require_eager(event_id id, std::string_view call, place from);

  void require_owned(const work& what) const;
  void submit_event(capture* open, stream_id stream, const work& what);
  std::string outside_text(const event_state& event, const capture& open) const;
  void require_well_formed(capture* open, const work& what) const;

  std::unique_ptr<capture> close(capture_map::iterator open);

  device_traits traits_;
  const std::unique_ptr<engine> engine_;
  bool global_captures_ = false;

  mutable std::mutex guard_;  // of all below; never held while the engine runs or waits
  std::uint64_t last_handle_ = 0;
  std::uint64_t streams_made_ = 0;
  std::unordered_map<stream_id, stream_state> streams_;
  std::unordered_map<event_id, event_state> events_;
  capture_map captures_;  // by origin
  std::unordered_map<graph_id, graph_state> graphs_;
  std::unordered_map<executable_id, std::shared_ptr<executable_body>> executables_;
};

}  // namespace reprise::sim
