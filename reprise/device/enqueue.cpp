#include "reprise/device/enqueue.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/ledger.hpp"
#include "reprise/device/shown_work.hpp"

namespace reprise {

namespace {

thread_local submission_watch* innermost_watch = nullptr;
thread_local host_wait_watch* innermost_wait_watch = nullptr;

}  // namespace

std::string_view name_of(work_kind kind) {
  switch (kind) {
    case work_kind::kernel: return "kernel";
    case work_kind::copy: return "copy";
    case work_kind::fill: return "fill";
    case work_kind::host_call: return "host call";
    case work_kind::empty: return "empty";
    case work_kind::external: return "external";
    case work_kind::event_record: return "event record";
    case work_kind::event_wait: return "event wait";
  }
  return "?";
}

submission_watch::submission_watch(seen see)
    : see_{std::move(see)}, outer_{std::exchange(innermost_watch, this)} {}

submission_watch::~submission_watch() {
  innermost_watch = outer_;
}

host_wait_watch::host_wait_watch(std::function<void(stream_id)> stream,
                                 std::function<void(event_id)> passed)
    : stream_{std::move(stream)},
      event_{std::move(passed)},
      outer_{std::exchange(innermost_wait_watch, this)} {}

host_wait_watch::~host_wait_watch() {
  innermost_wait_watch = outer_;
}

void tell_waited(stream_id stream) {
  for (host_wait_watch* w = innermost_wait_watch; w != nullptr; w = w->outer_) w->stream_(stream);
}

void tell_waited(event_id passed) {
  for (host_wait_watch* w = innermost_wait_watch; w != nullptr; w = w->outer_) w->event_(passed);
}

void show_to_watches(stream_ref stream, const work& what) {
  for (submission_watch* w = innermost_watch; w != nullptr; w = w->outer_) w->see_(stream, what);
}

node_id enqueue(stream_ref stream, const work& what) {
  if (what.kind != work_kind::kernel) {  // kernel/launch.hpp has asked its cell
    for (const access& one : what.accesses) {
      if (one.indirect) throw direct_refused{one.begin, name_of(what.kind), what.label};
    }
  }
  show_to_watches(stream, what);
  const node_id made = stream.device().api().submit(stream.id(), what);
  if (made != node_id::none) {
    each_pinned(stream.device(), what, [&](std::shared_ptr<const void> owner) {
      if (REPRISE_MUTANT(graph_keeps_no_pinned_memory)) return;
      stream.device().api().keep(stream.id(), std::move(owner));
      landmark("pinned memory: kept by a graph");
    });
  }
  return made;
}

void require_room(std::size_t from_bytes, std::size_t to_bytes, std::source_location place) {
  if (from_bytes <= to_bytes || REPRISE_MUTANT(copy_runs_over_its_end)) return;
  throw usage_error{
      fmt::format("copy at {}:{}: {} bytes do not fit a destination of {}; copy a part, "
                  "or make room",
                  place.file_name(), place.line(), from_bytes, to_bytes)};
}

node_id copy_bytes(site at, const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes == 0) return node_id::none;
  const std::array<access, 2> touches{access{from, bytes, false}, access{to, bytes, true}};
  work what;
  what.kind = work_kind::copy;
  what.label = "copy";
  what.accesses = touches;
  what.place = at.place;
  what.copy = {to, from, bytes};
  return enqueue(at.stream, what);
}

node_id fill_bytes(site at, std::byte* to, std::size_t bytes, std::uint32_t pattern,
                   std::uint8_t pattern_bytes) {
  if (bytes == 0) return node_id::none;
  const access touches{to, bytes, true};
  work what;
  what.kind = work_kind::fill;
  what.label = "fill";
  what.accesses = {&touches, 1};
  what.place = at.place;
  what.fill = {to, bytes, pattern, pattern_bytes};
  return enqueue(at.stream, what);
}

node_id empty(site at, std::string_view label) {
  work what;
  what.kind = work_kind::empty;
  what.label = label;
  what.place = at.place;
  return enqueue(at.stream, what);
}

node_id external(site at, std::string_view label, std::initializer_list<access> touches,
                 const std::function<void(void* native_stream)>& run) {
  work what;
  what.kind = work_kind::external;
  what.label = label;
  what.accesses = {touches.begin(), touches.size()};
  what.place = at.place;
  what.on_stream = &run;
  return enqueue(at.stream, what);
}

node_id host_call(site at, std::string_view label, std::initializer_list<access> touches,
                  const std::function<void()>& run) {
  work what;
  what.kind = work_kind::host_call;
  what.label = label;
  what.accesses = {touches.begin(), touches.size()};
  what.place = at.place;
  what.on_host = &run;
  return enqueue(at.stream, what);
}

}  // namespace reprise
