// The in-order device: a stream is a name, its events have always happened, and only captures have
// state. Handles are numbers that are never used twice, so a dead one is found.
#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <unordered_map>

#include "reprise/base/error.hpp"
#include "reprise/sim/blocks.hpp"
#include "reprise/sim/capture.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/sim/processor.hpp"
#include "reprise/sim/workers.hpp"

namespace reprise::sim {

namespace {

class cpu_device final : public device_api {
 public:
  explicit cpu_device(int threads) : workers_{threads > 0 ? threads : processor_threads()} {
    traits_.name = "cpu";
    traits_.model = processor_model();
    traits_.bodies = device_kind::cpu;
    traits_.arch_chain = processor_arch_chain();
    traits_.threads = workers_.threads();
  }

  const device_traits& traits() const override { return traits_; }

  memory_figures memory(place) override {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return {page * static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)),
            page * static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES))};
  }

  std::byte* allocate(memory_kind, std::size_t bytes, place from) override {
    std::byte* const begin = blocks_.allocate(bytes);
    if (begin == nullptr) throw out_of_memory{at("allocate", from), bytes, memory(from).free};
    return begin;
  }

  void release(memory_kind, std::byte* block) noexcept override { blocks_.release(block); }

  stream_id create_stream(place from) override {
    const std::lock_guard lock{guard_};
    const auto id = stream_id{++last_handle_};
    streams_.emplace(id, stream_state{++streams_made_, from, nullptr});
    return id;
  }

  void destroy(stream_id stream) noexcept override {
    abandon_capture(stream);
    const std::lock_guard lock{guard_};
    streams_.erase(stream);
  }

  void synchronize(stream_id stream, place from) override {
    const std::lock_guard lock{guard_};
    if (capture* open = capture_of(stream, "synchronize", from)) {
      refuse_in_capture(*open, "synchronize", "the host cannot wait for work that is only recorded",
                        from);
    }
  }

  event_id create_event(place) override {
    const std::lock_guard lock{guard_};
    const auto id = event_id{++last_handle_};
    events_.emplace(id, event_state{});
    return id;
  }

  void destroy(event_id event) noexcept override {
    const std::lock_guard lock{guard_};
    events_.erase(event);
  }

  bool finished(event_id event, place from) override {
    const std::lock_guard lock{guard_};
    require_eager(event, "finished", from);
    return true;
  }

  void synchronize(event_id event, place from) override {
    const std::lock_guard lock{guard_};
    require_eager(event, "synchronize event", from);
  }

  void submit(stream_id stream, const work& what) override {
    {
      const std::lock_guard lock{guard_};
      capture* open = capture_of(stream, name_of(what.kind), what.place);
      if (open != nullptr && !open->valid()) {
        throw capture_error{at(name_of(what.kind), what.place), spoiled_text(*open)};
      }
      require_well_formed(open, what);
      if (what.kind == work_kind::event_record || what.kind == work_kind::event_wait) {
        submit_event(open, stream, what);
        return;
      }
      if (open != nullptr) {
        open->add(stream, what);
        return;
      }
    }
    run_now(what, workers_.ref());
  }

  void begin_capture(stream_id stream, place from) override {
    const std::lock_guard lock{guard_};
    if (capture* open = capture_of(stream, "begin_capture", from)) {
      refuse_in_capture(*open, "begin_capture", "the stream is being captured already", from);
    }
    auto fresh = std::make_unique<capture>(stream, ++captures_begun_);
    streams_.at(stream).open = fresh.get();
    captures_.emplace(stream, std::move(fresh));
  }

  graph_id end_capture(stream_id stream, place from) override {
    const std::lock_guard lock{guard_};
    const auto open = captures_.find(stream);
    if (open == captures_.end()) {
      if (capture* const joined = capture_of(stream, "end_capture", from)) {
        refuse_in_capture(*joined, "end_capture",
                          "the stream only joined a capture, which is ended where it was begun",
                          from);
      }
      throw capture_error{at("end_capture", from), "no capture was begun on this stream"};
    }
    const std::unique_ptr<capture> ended = close(open);
    if (!ended->valid()) throw capture_error{at("end_capture", from), spoiled_text(*ended)};
    if (const stream_id left = ended->unjoined(); left != stream_id::none) {
      throw capture_error{at("end_capture", from),
                          fmt::format("{} was forked and not joined; record an event on it behind "
                                      "its last work and wait for that on the captured stream",
                                      text_of(left))};
    }
    const auto id = graph_id{++last_handle_};
    graphs_.emplace(id, std::make_shared<const node_list>(ended->take_nodes()));
    return id;
  }

  void abandon_capture(stream_id stream) noexcept override {
    const std::lock_guard lock{guard_};
    if (const auto open = captures_.find(stream); open != captures_.end()) close(open);
  }

  bool capturing(stream_id stream) const override {
    const std::lock_guard lock{guard_};
    const auto found = streams_.find(stream);
    return found != streams_.end() && found->second.open != nullptr;
  }

  std::size_t node_count(graph_id graph) const override {
    const std::lock_guard lock{guard_};
    return nodes_of(graph, "node_count", place::current())->size();
  }

  void destroy(graph_id graph) noexcept override {
    const std::lock_guard lock{guard_};
    graphs_.erase(graph);
  }

  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override {
    const std::lock_guard lock{guard_};
    if (capture* open = capture_of(upload_on, "instantiate", from)) {
      refuse_in_capture(*open, "instantiate", "its upload needs a stream that is not captured",
                        from);
    }
    const auto id = executable_id{++last_handle_};
    executables_.emplace(id, nodes_of(graph, "instantiate", from));
    return id;
  }

  void launch(executable_id executable, stream_id stream, place from) override {
    std::shared_ptr<const node_list> nodes;
    {
      const std::lock_guard lock{guard_};
      if (capture* open = capture_of(stream, "launch", from)) {
        refuse_in_capture(*open, "launch", "an executable is not launched inside a capture", from);
      }
      const auto found = executables_.find(executable);
      if (found == executables_.end()) {
        throw device_error{at("launch", from), "the executable was destroyed"};
      }
      nodes = found->second;
    }
    for (const auto& node : *nodes) run_now(node->borrow(), workers_.ref());
  }

  void destroy(executable_id executable) noexcept override {
    const std::lock_guard lock{guard_};
    executables_.erase(executable);
  }

 private:
  using capture_map = std::unordered_map<stream_id, std::unique_ptr<capture>>;

  struct stream_state {
    std::uint64_t number = 0;  // for people
    place made_at;
    capture* open = nullptr;  // null: not captured
  };
  // What an event stands for: nothing yet, a point of a stream, or a point of a capture.
  struct event_state {
    enum : std::uint8_t { never, eagerly, captured } recorded = never;
    std::uint64_t capture_number = 0;
    std::uint64_t stream_number = 0;
  };

  call_place at(std::string_view call, place from) const { return {call, traits_.name, from}; }

  capture* capture_of(stream_id stream, std::string_view call, place from) const {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) {
      throw device_error{at(call, from), "the stream was destroyed or is of another device"};
    }
    return found->second.open;
  }

  std::shared_ptr<const node_list> nodes_of(graph_id graph, std::string_view call,
                                            place from) const {
    const auto found = graphs_.find(graph);
    if (found == graphs_.end()) throw device_error{at(call, from), "the graph was destroyed"};
    return found->second;
  }

  // "stream 3 (made at file.cpp:12)"
  std::string text_of(stream_id stream) const {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return "a stream that was destroyed";
    const std::string_view path = found->second.made_at.file_name();
    return fmt::format("stream {} (made at {}:{})", found->second.number,
                       path.substr(path.find_last_of('/') + 1), found->second.made_at.line());
  }

  static std::string spoiled_text(const capture& open) {
    return "the capture was made invalid by: " + open.cause();
  }

  // A call that cannot be captured fails at once and spoils the capture, as on a GPU.
  [[noreturn]] void refuse_in_capture(capture& open, std::string_view call, std::string_view why,
                                      place from) const {
    const capture_error refusal{at(call, from),
                                fmt::format("{}; do it before or after the capture", why)};
    open.invalidate(refusal.what());
    throw refusal;
  }

  [[noreturn]] void refuse(capture* open, std::string_view call, std::string_view why,
                           place from) const {
    if (open != nullptr) refuse_in_capture(*open, call, why, from);
    throw device_error{at(call, from), why};
  }

  event_state& state_of(event_id event, std::string_view call, place from) {
    const auto found = events_.find(event);
    if (found == events_.end()) throw device_error{at(call, from), "the event was destroyed"};
    return found->second;
  }

  capture* open_capture_of(const event_state& event) const {
    if (event.recorded != event_state::captured) return nullptr;
    for (const auto& [stream, open] : captures_) {
      if (open->number() == event.capture_number) return open.get();
    }
    return nullptr;
  }

  // The host cannot wait for work that only a graph will do.
  void require_eager(event_id id, std::string_view call, place from) {
    const event_state& event = state_of(id, call, from);
    if (event.recorded != event_state::captured) return;
    if (capture* const open = open_capture_of(event)) {
      refuse_in_capture(*open, call, "the event was recorded in a capture that is open", from);
    }
    throw device_error{at(call, from),
                       "the event was recorded last in a capture that is over, so it stands for a "
                       "place in that graph; record it on a stream behind the launch"};
  }

  void submit_event(capture* open, stream_id stream, const work& what) {
    event_state& event = state_of(what.event, name_of(what.kind), what.place);
    if (what.kind == work_kind::event_record) {
      event = {open != nullptr ? event_state::captured : event_state::eagerly,
               open != nullptr ? open->number() : 0, streams_.at(stream).number};
      if (open != nullptr) open->record(what.event, stream);
      return;
    }
    capture* const recorded_in = open_capture_of(event);
    if (open != nullptr) {
      if (recorded_in != open) {
        refuse_in_capture(*open, name_of(what.kind), outside_text(event, *open), what.place);
      }
      open->wait(what.event, stream);
      return;
    }
    if (event.recorded != event_state::captured) return;
    if (recorded_in == nullptr) {
      throw device_error{at(name_of(what.kind), what.place),
                         "the event was recorded last in a capture that is over, so the wait would "
                         "order nothing; record it on a stream behind the launch"};
    }
    recorded_in->wait(what.event, stream);  // the fork: this stream is captured from here on
    streams_.at(stream).open = recorded_in;
  }

  std::string outside_text(const event_state& event, const capture& open) const {
    if (event.recorded == event_state::never) {
      return fmt::format("the event was never recorded, so the capture on {} would lose the wait",
                         text_of(open.origin()));
    }
    return fmt::format(
        "the event was recorded last on stream {}, outside the capture on {}, and a "
        "graph cannot wait for that",
        event.stream_number, text_of(open.origin()));
  }

  // What a GPU refuses too.
  void require_well_formed(capture* open, const work& what) const {
    const std::string_view call = name_of(what.kind);
    if (what.kind == work_kind::copy && what.copy.bytes != 0) {
      if (what.copy.to == nullptr || what.copy.from == nullptr) {
        refuse(open, call, "one side is a null pointer", what.place);
      }
      const bool owned = blocks_.owns(what.copy.from, what.copy.bytes) &&
                         blocks_.owns(what.copy.to, what.copy.bytes);
      if (owned || open == nullptr) return;
      refuse(open, call,
             "one side is pageable host memory, which may be gone at the replay; use a pinned "
             "buffer or a buffer of the device",
             what.place);
    }
    if (what.kind == work_kind::fill && what.fill.bytes != 0) {
      const fill_call& f = what.fill;
      const bool whole = (f.pattern_bytes == 1 || f.pattern_bytes == 2 || f.pattern_bytes == 4) &&
                         f.bytes % f.pattern_bytes == 0 &&
                         reinterpret_cast<std::uintptr_t>(f.to) % f.pattern_bytes == 0;
      if (!whole) {
        refuse(open, call,
               "the pattern must have 1, 2 or 4 bytes, fit the length a whole number of times, and "
               "its target must be aligned to it",
               what.place);
      }
      if (!blocks_.owns(f.to, f.bytes)) {
        refuse(open, call,
               "the target is pageable host memory, which a device does not write; fill it on the "
               "host",
               what.place);
      }
    }
  }

  std::unique_ptr<capture> close(capture_map::iterator open) {
    std::unique_ptr<capture> ended = std::move(open->second);
    for (const stream_id s : ended->streams()) {
      if (const auto live = streams_.find(s); live != streams_.end()) live->second.open = nullptr;
    }
    captures_.erase(open);
    return ended;
  }

  device_traits traits_;
  workers workers_;
  block_table blocks_;

  mutable std::mutex guard_;  // of all below
  std::uint64_t last_handle_ = 0;
  std::uint64_t streams_made_ = 0;
  std::uint64_t captures_begun_ = 0;
  std::unordered_map<stream_id, stream_state> streams_;
  std::unordered_map<event_id, event_state> events_;
  capture_map captures_;  // by origin
  std::unordered_map<graph_id, std::shared_ptr<const node_list>> graphs_;
  std::unordered_map<executable_id, std::shared_ptr<const node_list>> executables_;
};

}  // namespace

std::unique_ptr<device_api> open_cpu(int threads) {
  return std::make_unique<cpu_device>(threads);
}

}  // namespace reprise::sim
