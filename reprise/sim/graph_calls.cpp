// Captures, graphs and executables of a simulated device.
#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/sim/simulated_device.hpp"

namespace reprise::sim {

void simulated_device::begin_capture(stream_id stream, place from) {
  engine_->enter("begin_capture", from);
  const std::lock_guard lock{guard_};
  if (capture* open = capture_of(stream, "begin_capture", from)) {
    refuse_in_capture(*open, "begin_capture", "the stream is being captured already", from);
  }
  auto fresh = std::make_unique<capture>(stream, engine_->watches_memory());
  streams_.at(stream).open = fresh.get();
  captures_.emplace(stream, std::move(fresh));
  engine_->capture_changed(stream, true);
}

graph_id simulated_device::end_capture(stream_id stream, place from) {
  engine_->enter("end_capture", from);
  std::unique_ptr<capture> ended;  // what it holds goes when the lock is gone
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
  ended = close(open);
  if (!ended->valid()) throw capture_error{at("end_capture", from), spoiled_text(*ended)};
  if (const stream_id left = ended->unjoined(); left != stream_id::none) {
    throw capture_error{at("end_capture", from),
                        fmt::format("{} was forked and not joined; record an event on it behind "
                                    "its last work and wait for that on the captured stream",
                                    text_of(left))};
  }
  const auto id = graph_id{++last_handle_};
  graphs_.emplace(id, graph_state{std::make_shared<const graph_body>(ended->take_graph())});
  return id;
}

void simulated_device::abandon_capture(stream_id stream) noexcept {
  std::unique_ptr<capture> ended;
  const std::lock_guard lock{guard_};
  if (const auto open = captures_.find(stream); open != captures_.end()) ended = close(open);
}

bool simulated_device::capturing(stream_id stream) const {
  const std::lock_guard lock{guard_};
  const auto found = streams_.find(stream);
  return found != streams_.end() && found->second.open != nullptr;
}

capture_place simulated_device::place_in_capture(stream_id stream) const {
  const std::lock_guard lock{guard_};
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.open == nullptr) return {};
  return found->second.open->place_of(stream);
}

bool simulated_device::precedes(const capture_place& earlier, stream_id stream) const {
  const std::lock_guard lock{guard_};
  const auto found = streams_.find(stream);
  return found != streams_.end() && found->second.open != nullptr &&
         found->second.open->precedes(earlier, stream);
}

void simulated_device::keep(stream_id captured, std::shared_ptr<const void> owner) {
  const std::lock_guard lock{guard_};
  const auto found = streams_.find(captured);
  if (found != streams_.end() && found->second.open != nullptr) {
    found->second.open->keep(std::move(owner));
  }
}

std::vector<node_row> simulated_device::nodes(graph_id graph, place from) const {
  return graph_of(graph, "nodes", from)->rows();
}

graph_id simulated_device::clone_without(graph_id graph, std::span<const node_id> gone,
                                         place from) {
  engine_->enter("clone_without", from);
  auto rest =
      std::make_shared<const graph_body>(graph_of(graph, "clone_without", from)->without(gone));
  const std::lock_guard lock{guard_};
  const auto id = graph_id{++last_handle_};
  graphs_.emplace(id, graph_state{std::move(rest)});
  return id;
}

// What a graph or an executable holds may call the device when it goes, so it goes unlocked.
void simulated_device::destroy(graph_id graph) noexcept {
  decltype(graphs_)::node_type gone;
  const std::lock_guard lock{guard_};
  gone = graphs_.extract(graph);
}

executable_id simulated_device::instantiate(graph_id graph, stream_id upload_on, place from) {
  return add_executable(graph, {}, upload_on, "instantiate", from);
}

executable_id simulated_device::instantiate_device_driven(graph_id graph,
                                                          std::span<const node_id> driven,
                                                          stream_id upload_on, place from) {
  return add_executable(graph, driven, upload_on, "instantiate_device_driven", from);
}

device_node simulated_device::device_handle(executable_id executable, node_id node, place from) {
  return executable_of(executable, "device_handle", from)->handle(node);
}

void simulated_device::launch(executable_id executable, stream_id stream, place from) {
  engine_->enter("launch", from);
  std::shared_ptr<executable_body> body;
  {
    const std::lock_guard lock{guard_};
    if (capture* open = capture_of(stream, "launch", from)) {
      refuse_in_capture(*open, "launch", "an executable is not launched inside a capture", from);
    }
    body = find_executable(executable, "launch", from);
  }
  engine_->launch(body, stream, from);
}

void simulated_device::enable(executable_id executable, node_id node, bool on, place from) {
  engine_->enter("enable", from);
  executable_of(executable, "enable", from)->enable(node, on);
}

void simulated_device::set_parameters(executable_id executable, node_id node, const work& what) {
  engine_->enter("set_parameters", what.place);
  const auto body = executable_of(executable, "set_parameters", what.place);
  {
    const std::lock_guard lock{guard_};
    require_well_formed(nullptr, what);
    if (what.kind == work_kind::copy && what.copy.bytes != 0) require_owned(what);
  }
  body->set_parameters(node, what);
}

bool simulated_device::update(executable_id executable, graph_id graph, place from) {
  engine_->enter("update", from);
  return executable_of(executable, "update", from)->update(graph_of(graph, "update", from));
}

void simulated_device::keep(executable_id executable, std::shared_ptr<const void> owner) {
  executable_of(executable, "keep", place::current())->keep(std::move(owner));
}

void simulated_device::destroy(executable_id executable) noexcept {
  decltype(executables_)::node_type gone;
  {
    const std::lock_guard lock{guard_};
    gone = executables_.extract(executable);
  }
  if (gone) engine_->retire(std::move(gone.mapped()));
}

std::size_t simulated_device::bytes_per_node(place) {
  return sizeof(graph_body::node) + sizeof(stored_work);
}

std::shared_ptr<const graph_body> simulated_device::graph_of(graph_id graph, std::string_view call,
                                                             place from) const {
  const std::lock_guard lock{guard_};
  return find_graph(graph, call, from).body;
}

const simulated_device::graph_state& simulated_device::find_graph(graph_id graph,
                                                                  std::string_view call,
                                                                  place from) const {
  const auto found = graphs_.find(graph);
  if (found == graphs_.end()) throw device_error{at(call, from), "the graph was destroyed"};
  if (found->second.spent) refuse_spent(call);
  return found->second;
}

std::shared_ptr<executable_body> simulated_device::executable_of(executable_id executable,
                                                                 std::string_view call,
                                                                 place from) const {
  const std::lock_guard lock{guard_};
  return find_executable(executable, call, from);
}

const std::shared_ptr<executable_body>& simulated_device::find_executable(executable_id executable,
                                                                          std::string_view call,
                                                                          place from) const {
  const auto found = executables_.find(executable);
  if (found == executables_.end()) {
    throw device_error{at(call, from), "the executable was destroyed"};
  }
  return found->second;
}

executable_id simulated_device::add_executable(graph_id graph, std::span<const node_id> driven,
                                               stream_id upload_on, std::string_view call,
                                               place from) {
  engine_->enter(call, from);
  const std::lock_guard lock{guard_};
  if (capture* open = capture_of(upload_on, call, from)) {
    refuse_in_capture(*open, call, "its upload needs a stream that is not captured", from);
  }
  auto body = std::make_shared<executable_body>(find_graph(graph, call, from).body, driven);
  const auto id = executable_id{++last_handle_};
  executables_.emplace(id, std::move(body));
  graphs_.at(graph).spent = !driven.empty();
  return id;
}

// Inside a graph: pageable memory may be gone at the replay.
void simulated_device::require_owned(const work& what) const {
  if (engine_->owns(what.copy.from, what.copy.bytes) &&
      engine_->owns(what.copy.to, what.copy.bytes)) {
    return;
  }
  throw device_error{at(name_of(what.kind), what.place),
                     "one side is pageable host memory, which may be gone at the replay; use a "
                     "pinned buffer or a buffer of the device"};
}

std::unique_ptr<capture> simulated_device::close(capture_map::iterator open) {
  std::unique_ptr<capture> ended = std::move(open->second);
  for (const stream_id s : ended->streams()) {
    if (const auto live = streams_.find(s); live != streams_.end()) live->second.open = nullptr;
  }
  const stream_id origin = open->first;
  captures_.erase(open);
  engine_->capture_changed(origin, false);
  return ended;
}

}  // namespace reprise::sim
