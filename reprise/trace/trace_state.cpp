#include "reprise/trace/trace_state.hpp"

#include <string>

#include "reprise/base/error.hpp"

namespace reprise {

trace_log::trace_log(std::size_t most_calls) : state_{std::make_unique<state>(most_calls)} {}

trace_log::~trace_log() = default;

trace trace_log::so_far() const {
  return state_->so_far();
}

traced_call begun(call_kind kind, std::source_location from) {
  traced_call call;
  call.kind = kind;
  call.at = {std::string{file_of(from)}, from.line()};
  return call;
}

namespace {

// Host memory may have taken the place of a released block, except where addresses of the device
// are not the host's; kernels, fills and external work do not touch the host's at all.
released_memory meaning_of_released(work_kind kind, device_kind bodies) {
  const bool may_touch_host = kind == work_kind::copy || kind == work_kind::host_call;
  return may_touch_host && bodies != device_kind::cuda ? released_memory::may_be_the_hosts
                                                       : released_memory::names_its_block;
}

}  // namespace

traced_work renamed(const work& what, device_kind bodies, trace_numbers& numbers) {
  const released_memory meaning = meaning_of_released(what.kind, bodies);
  const auto range = [&](const void* begin, std::size_t bytes) {
    return numbers.memory.of(begin, bytes, meaning);
  };
  traced_work made;
  made.kind = what.kind;
  made.label = what.label;
  for (const access& one : what.accesses) {
    made.accesses.push_back({range(one.begin, bytes_at_begin(one)), one.writes && !one.indirect});
  }
  if (what.kind == work_kind::copy) {
    made.from = range(what.copy.from, what.copy.bytes);
    made.to = range(what.copy.to, what.copy.bytes);
  }
  if (what.kind == work_kind::fill) {
    made.to = range(what.fill.to, what.fill.bytes);
    made.pattern_bytes = what.fill.pattern_bytes;
  }
  if (what.kind == work_kind::event_record || what.kind == work_kind::event_wait) {
    made.event = numbers.events.of(what.event);
  }
  return made;
}

}  // namespace reprise
