#include "workloads/memory/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "reprise/base/mutant.hpp"
#include "workloads/memory/model.hpp"

namespace reprise::memory {

namespace {

constexpr auto held = static_cast<std::size_t>(eager_cause::hold);
constexpr auto off = static_cast<std::size_t>(eager_cause::suspended);

// A window of micro-batches, forwards first, then backwards in the same order.
struct schedule {
  std::uint64_t windows;
  std::uint64_t micro_batches;  // of each

  std::uint64_t calls() const { return windows * micro_batches; }
};

// Not checkpointed, with so many frames at most: micro-batch i has frame i % frames. A frame that
// one micro-batch of the window has to itself is never stale; where several take turns, none finds
// its own state there: a later one took it, and a backward uses it up.
grad_counts in_frames(const schedule& s, std::uint64_t most_frames) {
  const std::uint64_t frames = std::min(most_frames, s.micro_batches);
  std::uint64_t stale = 0;
  for (std::uint64_t f = 0; f < frames; ++f) {
    const std::uint64_t takers = (s.micro_batches - f + frames - 1) / frames;
    if (takers > 1) stale += takers;
  }
  grad_counts planned;
  planned.forward_capture = planned.backward_capture = frames;
  planned.forward_replay = planned.backward_replay = s.calls() - frames;
  planned.stale_replay = s.windows * stale;
  return planned;
}

// Not checkpointed, under hold: the first micro-batch of a window has the frame until its backward.
grad_counts holding(const schedule& s) {
  grad_counts planned;
  planned.forward_capture = planned.backward_capture = 1;
  planned.forward_replay = planned.backward_replay = s.windows - 1;
  planned.eager_forward[held] = planned.eager_backward[held] = s.calls() - s.windows;
  return planned;
}

// In a checkpointed span: a forward owes nothing, and runs again right before its backward, in the
// one frame, so that none is ever stale or held.
grad_counts in_a_span(const schedule& s) {
  grad_counts planned;
  planned.forward_capture = planned.backward_capture = 1;
  planned.forward_replay = 2 * s.calls() - 1;
  planned.backward_replay = s.calls() - 1;
  return planned;
}

grad_counts not_recorded(const schedule& s, bool in_span) {
  grad_counts planned;
  planned.eager_forward[off] = (in_span ? 2 : 1) * s.calls();
  planned.eager_backward[off] = s.calls();
  return planned;
}

grad_counts outside_of_spans(const schedule& s, const on_conflict& policy) {
  if (std::holds_alternative<hold>(policy)) return holding(s);
  return in_frames(s, static_cast<std::uint64_t>(states_of(policy)));
}

step_counts steps_of(std::uint64_t runs, bool records) {
  step_counts planned;
  if (runs == 0) return planned;
  if (records) {
    planned.captured = 1;
    planned.replayed = runs - 1;
  } else {
    planned.eager = runs;
    planned.eager_reasons["recording is off"] = runs;
  }
  return planned;
}

std::string difference_of(std::string_view what, std::uint64_t ran, std::uint64_t planned) {
  if (ran == planned) return {};
  return fmt::format("{} {}, planned {}", what, ran, planned);
}

std::string difference_of(const grad_counts& ran, const grad_counts& planned) {
  const std::array<std::pair<std::string_view, std::uint64_t grad_counts::*>, 8> counters{{
      {"forwards captured", &grad_counts::forward_capture},
      {"forwards shared", &grad_counts::forward_shared},
      {"forwards replayed", &grad_counts::forward_replay},
      {"backwards captured", &grad_counts::backward_capture},
      {"backwards replayed", &grad_counts::backward_replay},
      {"stale replays", &grad_counts::stale_replay},
      {"stale replays by the pool", &grad_counts::stale_by_pool},
      {"inferences", &grad_counts::inference},
  }};
  for (const auto& [what, member] : counters) {
    if (std::string found = difference_of(what, ran.*member, planned.*member); !found.empty()) {
      return found;
    }
  }
  for (std::size_t i = 0; i < eager_causes; ++i) {
    const std::string_view cause = name_of(static_cast<eager_cause>(i));
    for (const auto& [what, counts] : {std::pair{"forwards", &grad_counts::eager_forward},
                                       std::pair{"backwards", &grad_counts::eager_backward}}) {
      std::string found = difference_of(fmt::format("{} eager by {}", what, cause),
                                        (ran.*counts)[i], (planned.*counts)[i]);
      if (!found.empty()) return found;
    }
  }
  return {};
}

std::string difference_of(const step_counts& ran, const step_counts& planned) {
  for (const auto& [what, member] :
       {std::pair{"captured", &step_counts::captured},
        std::pair{"replayed", &step_counts::replayed}, std::pair{"eager", &step_counts::eager},
        std::pair{"evicted", &step_counts::evicted}}) {
    if (std::string found = difference_of(what, ran.*member, planned.*member); !found.empty()) {
      return found;
    }
  }
  return ran.eager_reasons == planned.eager_reasons ? "" : "other reasons of eager runs";
}

}  // namespace

run_counts planned_counts(const memory_options& o, bool records) {
  const schedule s{static_cast<std::uint64_t>(o.steps), static_cast<std::uint64_t>(o.accumulate)};
  const bool in_spans = o.regions > 1;
  const auto outside = [&](const on_conflict& policy) {
    return records ? outside_of_spans(s, policy) : not_recorded(s, false);
  };
  const auto in_span = [&] { return records ? in_a_span(s) : not_recorded(s, true); };

  run_counts planned;
  planned.ops.push_back({"embedding", outside(o.conflict)});
  for (std::int64_t i = 0; i < network_layers(o); ++i) {
    planned.ops.push_back(
        {fmt::format("network {}", i), in_spans ? in_span() : outside(o.conflict)});
  }
  // Its frame lies behind those of the spans in their pool, and what a span's forward replays
  // there takes its state away: so nothing is held, and what is owed is recomputed.
  const bool is_taken = in_spans && std::holds_alternative<hold>(o.conflict);
  planned.ops.push_back({"loss", outside(is_taken ? on_conflict{recompute{}} : o.conflict)});

  planned.updates = steps_of(static_cast<std::uint64_t>(o.steps), records);
  // The last byte of the sample is not read.
  const std::uint64_t bytes = o.prompt.size() + static_cast<std::uint64_t>(o.sample);
  planned.samples = steps_of(o.sample == 0 ? 0 : bytes - 1, records);
  return planned;
}

std::string difference(const run_counts& ran, const run_counts& planned) {
  if (REPRISE_MUTANT(memory_counts_are_not_held_to_the_plan)) return {};
  if (ran.ops.size() != planned.ops.size()) {
    return fmt::format("{} ops, planned {}", ran.ops.size(), planned.ops.size());
  }
  for (std::size_t i = 0; i < ran.ops.size(); ++i) {
    const std::string found = difference_of(ran.ops[i].counts, planned.ops[i].counts);
    if (!found.empty()) return fmt::format("{}: {}", ran.ops[i].op, found);
  }
  if (std::string found = difference_of(ran.updates, planned.updates); !found.empty()) {
    return fmt::format("optimizer: {}", found);
  }
  if (std::string found = difference_of(ran.samples, planned.samples); !found.empty()) {
    return fmt::format("sample: {}", found);
  }
  return {};
}

}  // namespace reprise::memory
