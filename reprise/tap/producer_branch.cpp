#include "reprise/tap/producer_branch.hpp"

#include <algorithm>

#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

producer_branch::producer_branch(tap_core& core, step_scope& run) : core_{core}, run_{run} {
  if (core_.options.in_line) return;
  core_.begun.record(run);
  watch_.emplace([this](stream_ref stream, const work& what) { see(stream, what); });
}

stream_ref producer_branch::ahead(step_scope& run) {
  ours_ = true;
  if (core_.options.in_line) return run;
  core_.begun.wait(core_.side);
  return core_.side;
}

stream_ref producer_branch::begin(step_scope& run) {
  ours_ = true;
  if (core_.options.in_line) return run;
  core_.crossing.record(run);
  core_.crossing.wait(core_.side);
  return core_.side;
}

void producer_branch::end(const tensor_ref& reads) {
  end();
  if (core_.options.in_line) return;
  pending_.push_back({reads.data, reads.data + reads.bytes(), launched_ - 1});
}

stream_ref producer_branch::behind(step_scope& run) {
  ours_ = true;
  return core_.options.in_line ? run : stream_ref{core_.side};
}

void producer_branch::end() {
  if (!core_.options.in_line) {
    if (core_.joins.size() == launched_) core_.joins.emplace_back(core_.device);
    core_.joins[launched_].record(core_.side);
  }
  ++launched_;
  ours_ = false;
}

// The branch is in order, so behind one producer is behind all before it.
void producer_branch::see(stream_ref stream, const work& what) {
  if (ours_ || pending_.empty() || REPRISE_MUTANT(late_join_is_left_out)) return;
  std::optional<std::size_t> last;
  for (const access& touched : what.accesses) {
    if (!touched.writes || touched.indirect || touched.bytes == 0) continue;
    const auto* const begin = static_cast<const std::byte*>(touched.begin);
    for (const pending& one : pending_) {
      const bool overlaps = begin < one.end && one.begin < begin + touched.bytes;
      if (overlaps && (!last || one.join > *last)) last = one.join;
    }
  }
  if (!last || !stream.capturing()) return;
  landmark("tap: joined a producer late");
  core_.joins[*last].wait(stream);
  if (!(stream == run_)) return;
  std::erase_if(pending_, [&](const pending& one) { return one.join <= *last; });
}

void producer_branch::join(step_scope& run) {
  watch_.reset();
  if (core_.options.in_line || launched_ == 0 || REPRISE_MUTANT(producers_are_not_joined)) return;
  core_.joins[launched_ - 1].wait(run);
}

}  // namespace reprise
