// Memory, streams, events, and the door for all enqueued work, of a simulated device.
#include "reprise/sim/simulated_device.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "reprise/base/error.hpp"

namespace reprise::sim {

simulated_device::simulated_device(device_traits traits, std::unique_ptr<engine> runs)
    : traits_{std::move(traits)}, engine_{std::move(runs)} {}

namespace {

constexpr std::string_view strays_text =
    "one side runs past the end of its block, or the block was released; give it the bytes that "
    "are there";

}  // namespace

// With global captures every call of another thread that waits, asks or allocates spoils them.
void simulated_device::enter(std::string_view call, place from) {
  engine_->enter(call, from);
  if (!global_captures_) return;
  const std::lock_guard lock{guard_};
  for (const auto& [origin, open] : captures_) {
    if (open->begun_by() == std::this_thread::get_id()) continue;
    open->invalidate(
        device_error{at(call, from), "another thread called it in global mode"}.what());
  }
}

memory_figures simulated_device::memory(place) {
  return engine_->figures();
}

std::byte* simulated_device::allocate(memory_kind kind, std::size_t bytes, place from) {
  enter("allocate", from);
  std::byte* const begin = engine_->allocate(kind, bytes, from);
  if (begin == nullptr) throw out_of_memory{at("allocate", from), bytes, memory(from).free};
  return begin;
}

void simulated_device::note(stream_id stream, const block_note& what) noexcept {
  if (!engine_->watches_memory()) return;
  {
    const std::lock_guard lock{guard_};
    const auto found = streams_.find(stream);
    if (found == streams_.end()) {
      stream = stream_id::none;  // all of its work is over
    } else if (found->second.open != nullptr) {
      found->second.open->note(stream, what);
      // It is taken now as well: its owner may use it before the graph is launched, or instead.
      if (what.change != block_change::taken) return;
      stream = stream_id::none;
    }
  }
  engine_->note(stream, what);
}

stream_id simulated_device::create_stream(stream_priority, place from) {
  engine_->enter("create_stream", from);
  const std::lock_guard lock{guard_};
  const auto id = stream_id{++last_handle_};
  streams_.emplace(id, stream_state{++streams_made_, from, nullptr});
  engine_->open(id, streams_made_, from);
  return id;
}

void simulated_device::destroy(stream_id stream) noexcept {
  abandon_capture(stream);
  engine_->close(stream);
  const std::lock_guard lock{guard_};
  streams_.erase(stream);
}

void simulated_device::synchronize(stream_id stream, place from) {
  enter("synchronize", from);
  {
    const std::lock_guard lock{guard_};
    if (capture* open = capture_of(stream, "synchronize", from)) {
      refuse_in_capture(*open, "synchronize", "the host cannot wait for work that is only recorded",
                        from);
    }
  }
  engine_->finish(stream, from);
}

event_id simulated_device::create_event(place from) {
  engine_->enter("create_event", from);
  const std::lock_guard lock{guard_};
  const auto id = event_id{++last_handle_};
  events_.emplace(id, event_state{});
  return id;
}

void simulated_device::destroy(event_id event) noexcept {
  const std::lock_guard lock{guard_};
  events_.erase(event);
  engine_->forget(event);
}

bool simulated_device::finished(event_id event, place from) {
  enter("finished", from);
  {
    const std::lock_guard lock{guard_};
    require_eager(event, "finished", from);
  }
  return engine_->happened(event, from);
}

void simulated_device::synchronize(event_id event, place from) {
  enter("synchronize event", from);
  {
    const std::lock_guard lock{guard_};
    require_eager(event, "synchronize event", from);
  }
  engine_->finish(event, from);
}

bool simulated_device::record_outside(stream_id stream, event_id event, place from) {
  engine_->enter("event record", from);
  const std::lock_guard lock{guard_};
  if (capture_of(stream, "event record", from) != nullptr) return false;
  state_of(event, "event record", from) = {event_state::eagerly, 0, streams_.at(stream).number};
  engine_->record(event, stream, from);
  return true;
}

node_id simulated_device::submit(stream_id stream, const work& what) {
  engine_->enter(name_of(what.kind), what.place);
  {
    const std::lock_guard lock{guard_};
    capture* open = capture_of(stream, name_of(what.kind), what.place);
    if (open != nullptr && !open->valid()) {
      throw capture_error{at(name_of(what.kind), what.place), spoiled_text(*open)};
    }
    require_well_formed(open, what);
    if (what.kind == work_kind::event_record || what.kind == work_kind::event_wait) {
      submit_event(open, stream, what);
      return node_id::none;
    }
    if (open != nullptr) {
      engine_->captured(stream, what);
      return open->add(stream, streams_.at(stream).number, what);
    }
  }
  engine_->run(stream, what);
  return node_id::none;
}

capture* simulated_device::capture_of(stream_id stream, std::string_view call, place from) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) {
    throw device_error{at(call, from), "the stream was destroyed or is of another device"};
  }
  return found->second.open;
}

// "stream 3 (made at file.cpp:12)"
std::string simulated_device::text_of(stream_id stream) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return "a stream that was destroyed";
  return fmt::format("stream {} (made at {})", found->second.number,
                     place_text(found->second.made_at));
}

std::string simulated_device::spoiled_text(const capture& open) {
  return "the capture was made invalid by: " + open.cause();
}

// A call that cannot be captured fails at once and spoils the capture, as on a GPU.
void simulated_device::refuse_in_capture(capture& open, std::string_view call, std::string_view why,
                                         place from) const {
  const capture_error refusal{at(call, from),
                              fmt::format("{}; do it before or after the capture", why)};
  open.invalidate(refusal.what());
  throw refusal;
}

void simulated_device::refuse(capture* open, std::string_view call, std::string_view why,
                              place from) const {
  if (open != nullptr) refuse_in_capture(*open, call, why, from);
  throw device_error{at(call, from), why};
}

simulated_device::event_state& simulated_device::state_of(event_id event, std::string_view call,
                                                          place from) {
  const auto found = events_.find(event);
  if (found == events_.end()) throw device_error{at(call, from), "the event was destroyed"};
  return found->second;
}

capture* simulated_device::open_capture_of(const event_state& event) const {
  if (event.recorded != event_state::captured) return nullptr;
  for (const auto& [stream, open] : captures_) {
    if (open->number() == event.capture_number) return open.get();
  }
  return nullptr;
}

// The host cannot wait for work that only a graph will do.
void simulated_device::require_eager(event_id id, std::string_view call, place from) {
  const event_state& event = state_of(id, call, from);
  if (event.recorded != event_state::captured) return;
  if (capture* const open = open_capture_of(event)) {
    refuse_in_capture(*open, call, "the event was recorded in a capture that is open", from);
  }
  throw device_error{at(call, from),
                     "the event was recorded last in a capture that is over, so it stands for a "
                     "place in that graph; record it on a stream behind the launch"};
}

void simulated_device::submit_event(capture* open, stream_id stream, const work& what) {
  event_state& event = state_of(what.event, name_of(what.kind), what.place);
  if (what.kind == work_kind::event_record) {
    event = {open != nullptr ? event_state::captured : event_state::eagerly,
             open != nullptr ? open->number() : 0, streams_.at(stream).number};
    if (open != nullptr) {
      engine_->captured(stream, what);
      open->record(what.event, stream);
    } else {
      engine_->record(what.event, stream, what.place);
    }
    return;
  }
  capture* const recorded_in = open_capture_of(event);
  if (open != nullptr) {
    if (recorded_in != open) {
      refuse_in_capture(*open, name_of(what.kind), outside_text(event, *open), what.place);
    }
    engine_->captured(stream, what);
    open->wait(what.event, stream);
    return;
  }
  if (event.recorded != event_state::captured) {
    return engine_->wait(what.event, stream, what.place);
  }
  if (recorded_in == nullptr) {
    throw device_error{at(name_of(what.kind), what.place),
                       "the event was recorded last in a capture that is over, so the wait would "
                       "order nothing; record it on a stream behind the launch"};
  }
  engine_->captured(stream, what);
  recorded_in->wait(what.event, stream);  // the fork: this stream is captured from here on
  streams_.at(stream).open = recorded_in;
}

std::string simulated_device::outside_text(const event_state& event, const capture& open) const {
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
void simulated_device::require_well_formed(capture* open, const work& what) const {
  const std::string_view call = name_of(what.kind);
  if (what.kind == work_kind::copy && what.copy.bytes != 0) {
    if (what.copy.to == nullptr || what.copy.from == nullptr) {
      refuse(open, call, "one side is a null pointer", what.place);
    }
    const bool owned = engine_->owns(what.copy.from, what.copy.bytes) &&
                       engine_->owns(what.copy.to, what.copy.bytes);
    if (owned || open == nullptr) return;
    if (engine_->strays(what.copy.from, what.copy.bytes) ||
        engine_->strays(what.copy.to, what.copy.bytes)) {
      refuse(open, call, strays_text, what.place);
    }
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
    if (engine_->strays(f.to, f.bytes)) refuse(open, call, strays_text, what.place);
    if (!engine_->owns(f.to, f.bytes)) {
      refuse(open, call,
             "the target is pageable host memory, which a device does not write; fill it on the "
             "host",
             what.place);
    }
  }
}

void simulated_device::spoil(stream_id stream, std::string_view cause) {
  const std::lock_guard lock{guard_};
  const auto found = streams_.find(stream);
  if (found != streams_.end() && found->second.open != nullptr) {
    found->second.open->invalidate(std::string{cause});
  }
}

std::string simulated_device::held_text() const {
  const std::lock_guard lock{guard_};
  std::string text;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count == 0) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, what, count == 1 ? "" : "s");
  };
  add(streams_.size(), "stream");
  add(events_.size(), "event");
  add(captures_.size(), "open capture");
  add(graphs_.size(), "graph");
  add(executables_.size(), "executable");
  return text;
}

}  // namespace reprise::sim
