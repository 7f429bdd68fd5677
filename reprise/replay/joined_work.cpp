#include "reprise/replay/joined_work.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/recorded_body.hpp"

namespace reprise {

joined_work::joined_work(stream_ref run)
    : run_{run},
      submissions_{[this](stream_ref stream, const work& what) { see(stream, what); }},
      waits_{[this](stream_id stream) { join(waited_for_, behind_[stream]); },
             [this](event_id passed) { join(waited_for_, events_[passed]); }} {}

void joined_work::see(stream_ref stream, const work& what) {
  reach& behind = behind_[stream.id()];
  switch (what.kind) {
    case work_kind::event_record: events_[what.event] = behind; return;
    case work_kind::event_wait: join(behind, events_[what.event]); return;
    default: behind[stream.id()] = ++given_[stream.id()];
  }
}

void joined_work::join(reach& into, const reach& other) {
  for (const auto& [stream, works] : other) into[stream] = std::max(into[stream], works);
}

void joined_work::require(std::string_view step, std::string_view why) const {
  reach before = waited_for_;
  if (const auto at = behind_.find(run_.id()); at != behind_.end()) join(before, at->second);
  for (const auto& [stream, works] : given_) {
    if (stream == run_.id() || REPRISE_MUTANT(breaks_may_leave_work_unjoined)) continue;
    const auto reached = before.find(stream);
    if (reached != before.end() && reached->second >= works) continue;
    run_.device().state().wait_for({stream});
    throw usage_error{fmt::format(
        "step '{}': the break '{}' leaves work on stream {} that the run does not wait for; join "
        "it with an event, or wait for it, before the break returns",
        step, why, static_cast<std::uint64_t>(stream))};
  }
}

void run_break(stream_ref run, std::string_view step, std::string_view why,
               const std::function<void(stream_ref)>& work) {
  const recorded_body not_here{false};
  const joined_work seen{run};
  work(run);
  seen.require(step, why);
}

}  // namespace reprise
