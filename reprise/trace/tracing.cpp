#include "reprise/trace/tracing.hpp"

#include <type_traits>
#include <utility>

#include "reprise/device/forwarding.hpp"
#include "reprise/trace/trace_state.hpp"

namespace reprise {

namespace {

class tracing_device final : public forwarding_device {
  static constexpr std::source_location nowhere{};

  static void nothing(traced_call&, trace_numbers&) {}

  // What a call names, to be filled in before it is made: afterwards it may name something else.
  static auto named(stream_id stream) {
    return [=](traced_call& c, trace_numbers& n) { c.stream = n.streams.of(stream); };
  }
  static auto named(event_id event) {
    return [=](traced_call& c, trace_numbers& n) { c.event = n.events.of(event); };
  }
  static auto named(graph_id graph, std::span<const node_id> nodes = {},
                    stream_id upload_on = stream_id::none) {
    return [=](traced_call& c, trace_numbers& n) {
      c.graph = n.graphs.of(graph);
      c.stream = n.streams.of(upload_on);
      for (const node_id node : nodes) c.nodes.push_back(n.nodes.of(node));
    };
  }
  static auto named(executable_id executable, node_id node) {
    return [=](traced_call& c, trace_numbers& n) {
      c.executable = n.executables.of(executable);
      c.node = n.nodes.of(node);
    };
  }

  // What a call gave.
  static void answered(traced_call& c, trace_numbers&, bool answer) { c.answer = answer; }
  static void made_graph(traced_call& c, trace_numbers& n, graph_id made) {
    c.made = n.graphs.born(made);
  }
  static void made_executable(traced_call& c, trace_numbers& n, executable_id made) {
    c.executable = n.executables.born(made);
  }

  // Makes a call that may fail and writes it down when it has returned.
  template <class Name, class Make, class... Gave>
  auto traced(call_kind kind, place from, const Name& name, const Make& make,
              const Gave&... gave) const {
    trace_log::state& log = log_->internals();
    traced_call call = begun(kind, from);
    log.note(call, name);
    try {
      if constexpr (std::is_void_v<decltype(make())>) {
        make();
        log.add(std::move(call));
      } else {
        auto given = make();
        log.note(call, [&](traced_call& c, trace_numbers& n) { (gave(c, n, given), ...); });
        log.add(std::move(call));
        return given;
      }
    } catch (...) {
      call.failed = failure_in_flight();
      log.add(std::move(call));
      throw;
    }
  }

  // Writes down a call that ends something and cannot fail, before it is made.
  template <class Name>
  void ending(call_kind kind, const Name& name) noexcept {
    log_->internals().add_ending(kind, name);
  }

 public:
  tracing_device(std::unique_ptr<device_api> inner, std::shared_ptr<trace_log> into)
      : forwarding_device{std::move(inner)}, log_{std::move(into)} {
    log_->internals().name(traits());
  }

  memory_figures memory(place from) override {
    return traced(
        call_kind::memory, from, nothing, [&] { return inner().memory(from); },
        [](traced_call&, trace_numbers&, const memory_figures&) {});
  }

  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override {
    return traced(
        call_kind::allocate, from,
        [&](traced_call& c, trace_numbers&) {
          c.memory = kind;
          c.bytes = bytes;
        },
        [&] { return inner().allocate(kind, bytes, from); },
        [&](traced_call& c, trace_numbers& n, std::byte* made) {
          c.block = n.memory.born(made, bytes, kind);
        });
  }
  void release(memory_kind kind, std::byte* block) noexcept override {
    ending(call_kind::release, [&](traced_call& c, trace_numbers& n) {
      c.memory = kind;
      c.block = n.memory.released(block);
    });
    inner().release(kind, block);
  }

  stream_id create_stream(stream_priority priority, place from) override {
    return traced(
        call_kind::create_stream, from, nothing,
        [&] { return inner().create_stream(priority, from); },
        [](traced_call& c, trace_numbers& n, stream_id made) { c.stream = n.streams.born(made); });
  }
  void destroy(stream_id stream) noexcept override {
    ending(call_kind::destroy_stream, named(stream));
    inner().destroy(stream);
  }
  void synchronize(stream_id stream, place from) override {
    traced(call_kind::synchronize_stream, from, named(stream),
           [&] { inner().synchronize(stream, from); });
  }

  event_id create_event(place from) override {
    return traced(
        call_kind::create_event, from, nothing, [&] { return inner().create_event(from); },
        [](traced_call& c, trace_numbers& n, event_id made) { c.event = n.events.born(made); });
  }
  void destroy(event_id event) noexcept override {
    ending(call_kind::destroy_event, named(event));
    inner().destroy(event);
  }
  bool finished(event_id event, place from) override {
    return traced(
        call_kind::finished, from, named(event), [&] { return inner().finished(event, from); },
        answered);
  }
  void synchronize(event_id event, place from) override {
    traced(call_kind::synchronize_event, from, named(event),
           [&] { inner().synchronize(event, from); });
  }

  node_id submit(stream_id stream, const work& what) override {
    return traced(
        call_kind::submit, what.place,
        [&](traced_call& c, trace_numbers& n) {
          c.stream = n.streams.of(stream);
          c.work = renamed(what, traits().bodies, n);
        },
        [&] { return inner().submit(stream, what); },
        [](traced_call& c, trace_numbers& n, node_id made) { c.node = n.nodes.of(made); });
  }

  // In a trace, the record that it is, or nothing.
  bool record_outside(stream_id stream, event_id event, place from) override {
    const bool recorded = inner().record_outside(stream, event, from);
    if (!recorded) return false;
    work what;
    what.kind = work_kind::event_record;
    what.label = name_of(what.kind);
    what.event = event;
    traced(
        call_kind::submit, from,
        [&](traced_call& c, trace_numbers& n) {
          c.stream = n.streams.of(stream);
          c.work = renamed(what, traits().bodies, n);
        },
        [] {});
    return true;
  }

  void begin_capture(stream_id stream, place from) override {
    traced(call_kind::begin_capture, from, named(stream),
           [&] { inner().begin_capture(stream, from); });
  }
  graph_id end_capture(stream_id stream, place from) override {
    return traced(
        call_kind::end_capture, from, named(stream),
        [&] { return inner().end_capture(stream, from); }, made_graph);
  }
  void abandon_capture(stream_id stream) noexcept override {
    ending(call_kind::abandon_capture, named(stream));
    inner().abandon_capture(stream);
  }
  bool capturing(stream_id stream) const override {
    return traced(
        call_kind::capturing, nowhere, named(stream),
        [&] { return forwarding_device::capturing(stream); }, answered);
  }
  capture_place place_in_capture(stream_id stream) const override {
    return traced(
        call_kind::place_in_capture, nowhere, named(stream),
        [&] { return forwarding_device::place_in_capture(stream); },
        [](traced_call& c, trace_numbers& n, const capture_place& at) {
          c.place = n.places.of(at);
        });
  }
  bool precedes(const capture_place& earlier, stream_id stream) const override {
    return traced(
        call_kind::precedes, nowhere,
        [&](traced_call& c, trace_numbers& n) {
          c.stream = n.streams.of(stream);
          c.place = n.places.of(earlier);
        },
        [&] { return forwarding_device::precedes(earlier, stream); }, answered);
  }
  void keep(stream_id captured, std::shared_ptr<const void> owner) override {
    traced(call_kind::keep_with_capture, nowhere, named(captured),
           [&] { inner().keep(captured, std::move(owner)); });
  }

  void keep(executable_id executable, std::shared_ptr<const void> owner) override {
    traced(call_kind::keep_with_executable, nowhere, named(executable, node_id::none),
           [&] { inner().keep(executable, std::move(owner)); });
  }

  std::vector<node_row> nodes(graph_id graph, place from) const override {
    return traced(
        call_kind::nodes, from, named(graph), [&] { return forwarding_device::nodes(graph, from); },
        [](traced_call& c, trace_numbers&, const auto& rows) { c.count = rows.size(); });
  }
  graph_id clone_without(graph_id graph, std::span<const node_id> gone, place from) override {
    return traced(
        call_kind::clone_without, from, named(graph, gone),
        [&] { return inner().clone_without(graph, gone, from); }, made_graph);
  }
  void destroy(graph_id graph) noexcept override {
    ending(call_kind::destroy_graph, named(graph));
    inner().destroy(graph);
  }

  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override {
    return traced(
        call_kind::instantiate, from, named(graph, {}, upload_on),
        [&] { return inner().instantiate(graph, upload_on, from); }, made_executable);
  }
  executable_id instantiate_device_driven(graph_id graph, std::span<const node_id> driven,
                                          stream_id upload_on, place from) override {
    return traced(
        call_kind::instantiate_device_driven, from, named(graph, driven, upload_on),
        [&] { return inner().instantiate_device_driven(graph, driven, upload_on, from); },
        made_executable);
  }
  device_node device_handle(executable_id executable, node_id node, place from) override {
    return traced(
        call_kind::device_handle, from, named(executable, node),
        [&] { return inner().device_handle(executable, node, from); },
        [](traced_call&, trace_numbers&, device_node) {});
  }

  void launch(executable_id executable, stream_id stream, place from) override {
    traced(
        call_kind::launch, from,
        [&](traced_call& c, trace_numbers& n) {
          c.executable = n.executables.of(executable);
          c.stream = n.streams.of(stream);
        },
        [&] { inner().launch(executable, stream, from); });
  }
  void enable(executable_id executable, node_id node, bool on, place from) override {
    traced(
        call_kind::enable, from,
        [&](traced_call& c, trace_numbers& n) {
          named(executable, node)(c, n);
          c.on = on;
        },
        [&] { inner().enable(executable, node, on, from); });
  }
  void set_parameters(executable_id executable, node_id node, const work& what) override {
    traced(
        call_kind::set_parameters, what.place,
        [&](traced_call& c, trace_numbers& n) {
          named(executable, node)(c, n);
          c.work = renamed(what, traits().bodies, n);
        },
        [&] { inner().set_parameters(executable, node, what); });
  }
  bool update(executable_id executable, graph_id graph, place from) override {
    return traced(
        call_kind::update, from,
        [&](traced_call& c, trace_numbers& n) {
          c.executable = n.executables.of(executable);
          c.graph = n.graphs.of(graph);
        },
        [&] { return inner().update(executable, graph, from); }, answered);
  }
  void destroy(executable_id executable) noexcept override {
    ending(call_kind::destroy_executable, named(executable, node_id::none));
    inner().destroy(executable);
  }

  void settle() noexcept override {
    ending(call_kind::settle, nothing);
    inner().settle();
  }
  std::size_t bytes_per_node(place from) override {
    return traced(
        call_kind::bytes_per_node, from, nothing, [&] { return inner().bytes_per_node(from); },
        [](traced_call& c, trace_numbers&, std::size_t bytes) { c.count = bytes; });
  }

 private:
  std::shared_ptr<trace_log> log_;
};

}  // namespace

std::unique_ptr<device_api> tracing(std::unique_ptr<device_api> inner,
                                    std::shared_ptr<trace_log> into) {
  return std::make_unique<tracing_device>(std::move(inner), std::move(into));
}

}  // namespace reprise
