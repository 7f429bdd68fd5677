#include "reprise/trace/rerun.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <unordered_map>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/trace/rerun_graphs.hpp"
#include "reprise/trace/rerun_handles.hpp"
#include "reprise/trace/rerun_memory.hpp"

namespace reprise {

namespace {

class rerunner {
 public:
  rerunner(const trace& what, device_api& on, const rerun_options& options)
      : what_{what}, api_{on}, options_{options}, memory_{what, options.most_bytes} {}
  ~rerunner() { close(); }
  rerunner(const rerunner&) = delete;
  rerunner& operator=(const rerunner&) = delete;

  rerun_report run() {
    for (const traced_call& call : what_.calls) {
      ++number_;
      if (call.failed != failure::none && options_.failed == failed_calls::leave_out) continue;
      make(call);
    }
    return std::move(report_);
  }

 private:
  static std::source_location here(std::source_location place = std::source_location::current()) {
    return place;
  }

  void differ(const traced_call& call, difference_kind kind, std::string_view what) {
    report_.differences.push_back({number_, kind, fmt::format("{}: {}", describe(call), what)});
  }

  // What a call names. A dead handle is told once, and only where the trace has no failure for it.
  std::string handle_fault(const traced_call& call) const {
    const std::uint32_t fields = fields_of(call.kind);
    const auto names = [&](call_field field) { return (fields & field) != 0; };
    const bool makes_stream = call.kind == call_kind::create_stream;
    const bool makes_event = call.kind == call_kind::create_event;
    const bool makes_executable =
        call.kind == call_kind::instantiate || call.kind == call_kind::instantiate_device_driven;
    std::string fault;
    const auto look = [&](bool named, const auto& table, auto number) {
      if (named && fault.empty()) fault = table.fault_of(number);
    };
    look(names(has_stream) && !makes_stream, streams_, call.stream);
    look(names(has_event) && !makes_event, events_, call.event);
    look(names(has_work), events_, call.work.event);
    look(names(has_graph), graphs_, call.graph);
    look(names(has_executable) && !makes_executable, executables_, call.executable);
    return fault;
  }

  // What a call touches: the fault, where the work or the launch has to be left out.
  std::optional<range_fault> memory_fault(const traced_call& call) {
    if (call.kind == call_kind::launch) return graphs_touch_.fault_of(call.executable, memory_);
    if ((fields_of(call.kind) & has_work) == 0) return std::nullopt;
    for (const traced_range& range : ranges_of(call.work)) {
      if (auto fault = memory_.fault_of(range)) return fault;
    }
    return std::nullopt;
  }

  static bool cannot_fail(call_kind kind) {
    switch (kind) {
      case call_kind::release:
      case call_kind::destroy_stream:
      case call_kind::destroy_event:
      case call_kind::abandon_capture:
      case call_kind::capturing:
      case call_kind::place_in_capture:
      case call_kind::precedes:
      case call_kind::destroy_graph:
      case call_kind::destroy_executable: return true;
      default: return false;
    }
  }

  // A stream that no call of the trace made was borrowed: somebody else's, and the same to us.
  void stand_in_for_borrowed(const traced_call& call) {
    const bool named = (fields_of(call.kind) & has_stream) != 0 && call.stream != stream_id::none;
    if (!named || call.kind == call_kind::create_stream || streams_.knows(call.stream)) return;
    streams_.put(call.stream, api_.create_stream(stream_priority::usual, here()));
  }

  void make(const traced_call& call) {
    stand_in_for_borrowed(call);
    const std::string dead = handle_fault(call);
    const bool unexpected = !dead.empty() && call.failed == failure::none;
    if (unexpected) differ(call, difference_kind::dead_handle, dead);
    // Where a device cannot refuse a dead handle, it is not asked to take it.
    if (!dead.empty() && cannot_fail(call.kind)) return;
    if (const auto fault = memory_fault(call)) {
      differ(call, fault->kind, fault->text + "; it is left out here");
      forget(call);
      return;
    }
    ++report_.calls;
    failure failed = failure::none;
    std::string why;
    try {
      perform(call);
    } catch (const std::exception& thrown) {
      failed = failure_in_flight();
      why = thrown.what();
      forget(call);
    }
    if (!unexpected) compare(call, failed, why);
  }

  void compare(const traced_call& call, failure failed, const std::string& why) {
    if (failed == call.failed) return;
    if (call.failed == failure::none) {
      differ(call, difference_kind::fails_now,
             fmt::format("fails with {} and did not in the trace: {}", name_of(failed), why));
    } else if (failed == failure::none) {
      differ(call, difference_kind::succeeds_now,
             fmt::format("succeeds and failed with {} in the trace; leave failed calls out, if the "
                         "failure was of that device",
                         name_of(call.failed)));
    } else {
      differ(call, difference_kind::fails_otherwise,
             fmt::format("fails with {} and with {} in the trace: {}", name_of(failed),
                         name_of(call.failed), why));
    }
  }

  // What a call did not make stays unmade, and is not told again at each use.
  void forget(const traced_call& call) {
    switch (call.kind) {
      case call_kind::create_stream: streams_.put_none(call.stream); break;
      case call_kind::create_event: events_.put_none(call.event); break;
      case call_kind::end_capture:
      case call_kind::clone_without: graphs_.put_none(call.made); break;
      case call_kind::instantiate:
      case call_kind::instantiate_device_driven: executables_.put_none(call.executable); break;
      default: break;
    }
    if (call.kind == call_kind::end_capture) graphs_touch_.ended(call.stream, graph_id::none);
  }

  // Keeps what was made, under its number. What failed in the trace has none: it goes at once.
  template <class Id>
  void keep(const traced_call& call, handle_table<Id>& table, Id number, Id made) {
    if (call.failed != failure::none) {
      api_.destroy(made);
    } else {
      table.put(number, made);
    }
  }

  void answer(const traced_call& call, bool now) {
    if (now == call.answer || call.failed != failure::none) return;
    differ(call, difference_kind::answers_otherwise,
           fmt::format("answers {} and {} in the trace", now ? "yes" : "no",
                       call.answer ? "yes" : "no"));
  }

  std::vector<node_id> nodes_of(const traced_call& call) const {
    std::vector<node_id> all;
    for (const node_id number : call.nodes) all.push_back(node_of(number));
    return all;
  }
  node_id node_of(node_id number) const {
    const auto found = nodes_.find(number);
    return found == nodes_.end() ? node_id::none : found->second;
  }

  void perform(const traced_call& call);
  void capture(const traced_call& call);
  void use_graphs(const traced_call& call);
  void allocate(const traced_call& call);
  void release(const traced_call& call);
  void submit(const traced_call& call);
  void close() noexcept;

  const trace& what_;
  device_api& api_;
  const rerun_options& options_;
  rerun_memory memory_;
  rerun_graphs graphs_touch_;
  handle_table<stream_id> streams_{"stream"};
  handle_table<event_id> events_{"event"};
  handle_table<graph_id> graphs_{"graph"};
  handle_table<executable_id> executables_{"executable"};
  std::unordered_map<node_id, node_id> nodes_;
  std::unordered_map<place_number, capture_place> places_;
  std::set<stream_id> origins_;  // of captures that are open, by the device's own ids
  std::size_t number_ = 0;
  rerun_report report_;
};

void rerunner::perform(const traced_call& call) {
  const stream_id stream = streams_[call.stream];
  const event_id event = events_[call.event];
  switch (call.kind) {
    case call_kind::memory: (void)api_.memory(here()); return;
    case call_kind::allocate: allocate(call); return;
    case call_kind::release: release(call); return;
    case call_kind::create_stream:
      keep(call, streams_, call.stream, api_.create_stream(stream_priority::usual, here()));
      return;
    case call_kind::destroy_stream:
      // A stream that only joined a capture leaves it, and the capture goes on.
      if (origins_.erase(stream) != 0) {
        graphs_touch_.ended(call.stream, graph_id::none);
      } else {
        graphs_touch_.left(call.stream);
      }
      api_.destroy(streams_.end(call.stream, number_));
      return;
    case call_kind::synchronize_stream: api_.synchronize(stream, here()); return;
    case call_kind::create_event:
      keep(call, events_, call.event, api_.create_event(here()));
      return;
    case call_kind::destroy_event: api_.destroy(events_.end(call.event, number_)); return;
    case call_kind::finished: (void)api_.finished(event, here()); return;  // a matter of time
    case call_kind::synchronize_event: api_.synchronize(event, here()); return;
    case call_kind::submit: submit(call); return;
    case call_kind::settle: api_.settle(); return;
    case call_kind::bytes_per_node: (void)api_.bytes_per_node(here()); return;
    default: break;
  }
  capture(call);
  use_graphs(call);
}

void rerunner::allocate(const traced_call& call) {
  if (call.failed == failure::none && !memory_.has_room(call.bytes)) {
    throw usage_error{fmt::format(
        "block {} of {} bytes is more than rerun_options::most_bytes leaves; raise that, or take a "
        "smaller trace",
        static_cast<std::uint64_t>(call.block), call.bytes)};
  }
  std::byte* const made = api_.allocate(call.memory, call.bytes, here());
  if (call.failed != failure::none) {
    api_.release(call.memory, made);
  } else {
    memory_.born(call.block, made, call.bytes, call.memory);
  }
}

void rerunner::release(const traced_call& call) {
  const auto gone = memory_.release(call.block, number_);
  if (!gone.fault.empty()) {
    differ(call, difference_kind::dead_memory, gone.fault);
    return;
  }
  if (gone.kind != call.memory) {
    differ(call, difference_kind::dead_memory,
           "it is released as the kind of memory that it is not; say what allocate was told");
  }
  api_.release(gone.kind, gone.begin);
}

void rerunner::submit(const traced_call& call) {
  const rerun_work again{call.work, memory_, events_[call.work.event]};
  const node_id made = api_.submit(streams_[call.stream], again.borrow());
  if (call.node != node_id::none) nodes_[call.node] = made;
  graphs_touch_.submitted(call.stream, call.work, call.node);
}

void rerunner::capture(const traced_call& call) {
  const stream_id stream = streams_[call.stream];
  switch (call.kind) {
    case call_kind::begin_capture:
      api_.begin_capture(stream, here());
      if (call.failed != failure::none) {
        api_.abandon_capture(stream);
        return;
      }
      origins_.insert(stream);
      graphs_touch_.began(call.stream);
      return;
    case call_kind::end_capture: {
      const graph_id made = api_.end_capture(stream, here());
      origins_.erase(stream);
      graphs_touch_.ended(call.stream, call.made);
      keep(call, graphs_, call.made, made);
      return;
    }
    case call_kind::abandon_capture:
      api_.abandon_capture(stream);
      if (origins_.erase(stream) != 0) graphs_touch_.ended(call.stream, graph_id::none);
      return;
    case call_kind::capturing: answer(call, api_.capturing(stream)); return;
    case call_kind::place_in_capture:
      if (const capture_place now = api_.place_in_capture(stream); now.capture != 0) {
        places_[call.place] = now;
      }
      return;
    case call_kind::precedes: answer(call, api_.precedes(places_[call.place], stream)); return;
    case call_kind::keep_with_capture: api_.keep(stream, std::make_shared<const int>(0)); return;
    default: return;
  }
}

void rerunner::use_graphs(const traced_call& call) {
  const stream_id stream = streams_[call.stream];
  const graph_id graph = graphs_[call.graph];
  const executable_id executable = executables_[call.executable];
  const node_id node = node_of(call.node);
  switch (call.kind) {
    case call_kind::nodes: (void)api_.nodes(graph, here()); return;
    case call_kind::clone_without:
      keep(call, graphs_, call.made, api_.clone_without(graph, nodes_of(call), here()));
      graphs_touch_.cloned(call.graph, call.nodes, call.made);
      return;
    case call_kind::destroy_graph: api_.destroy(graphs_.end(call.graph, number_)); return;
    case call_kind::instantiate:
      keep(call, executables_, call.executable, api_.instantiate(graph, stream, here()));
      graphs_touch_.instantiated(call.graph, call.executable);
      return;
    case call_kind::instantiate_device_driven:
      keep(call, executables_, call.executable,
           api_.instantiate_device_driven(graph, nodes_of(call), stream, here()));
      graphs_touch_.instantiated(call.graph, call.executable);
      return;
    case call_kind::device_handle: (void)api_.device_handle(executable, node, here()); return;
    case call_kind::keep_with_executable:
      api_.keep(executable, std::make_shared<const int>(0));
      return;
    case call_kind::launch: api_.launch(executable, stream, here()); return;
    case call_kind::enable:
      api_.enable(executable, node, call.on, here());
      graphs_touch_.enabled(call.executable, call.node, call.on);
      return;
    case call_kind::set_parameters: {
      const rerun_work again{call.work, memory_, events_[call.work.event]};
      api_.set_parameters(executable, node, again.borrow());
      graphs_touch_.changed(call.executable, call.node, call.work);
      return;
    }
    case call_kind::update: {
      const bool same_topology = api_.update(executable, graph, here());
      if (same_topology) graphs_touch_.updated(call.executable, call.graph);
      answer(call, same_topology);
      return;
    }
    case call_kind::destroy_executable:
      api_.destroy(executables_.end(call.executable, number_));
      return;
    default: return;
  }
}

// What the trace left open. Streams wait for their work as they go, so memory comes last.
void rerunner::close() noexcept {
  const bool anything = executables_.any_live() || graphs_.any_live() || streams_.any_live();
  for (const stream_id stream : std::exchange(origins_, {})) api_.abandon_capture(stream);
  for (const executable_id executable : executables_.take_live()) api_.destroy(executable);
  for (const graph_id graph : graphs_.take_live()) api_.destroy(graph);
  for (const event_id event : events_.take_live()) api_.destroy(event);
  for (const stream_id stream : streams_.take_live()) api_.destroy(stream);
  if (anything) api_.settle();
  for (const auto& block : memory_.release_all()) api_.release(block.kind, block.begin);
}

}  // namespace

rerun_report rerun(const trace& what, device_api& on, const rerun_options& options) {
  if (on.traits().bodies != device_kind::cpu) {
    throw usage_error{fmt::format(
        "a re-run touches memory from bodies on the CPU, and {} runs CUDA bodies; make the calls "
        "again on a simulated device, such as cpu",
        on.traits().name)};
  }
  return rerunner{what, on, options}.run();
}

}  // namespace reprise
