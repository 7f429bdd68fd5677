#include "workloads/train/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "workloads/train/model.hpp"

namespace reprise::train {

namespace {

constexpr auto by_key = static_cast<std::size_t>(eager_cause::key);
constexpr auto off = static_cast<std::size_t>(eager_cause::suspended);

std::uint64_t batches_of(std::int64_t validated) {
  return static_cast<std::uint64_t>((validated + validated_at_once - 1) / validated_at_once);
}

// A trunk or a group, whose forward and backward come right behind one another: the shape of the
// first is recorded, others run eagerly. Without a target there is no backward.
part_counts module_counts(const scheduled_run& run, bool is_on, bool needs_labels) {
  part_counts planned;
  std::optional<std::int64_t> recorded_rows;
  for (const epoch& windows : run.epochs) {
    for (const window& one : windows) {
      bool has_gradients = false;  // of this window
      for (const micro_batch& batch : one) {
        grad_counts& calls = planned.calls;
        if (needs_labels && !batch.has_labels) {
          ++planned.empty_targets;
          ++calls.eager_forward[off];
          continue;
        }
        if (!is_on) {
          ++calls.eager_forward[off];
          ++calls.eager_backward[off];
        } else if (!recorded_rows) {
          recorded_rows = batch.rows;
          ++calls.forward_capture;
          ++calls.backward_capture;
        } else if (*recorded_rows == batch.rows) {
          ++calls.forward_replay;
          ++calls.backward_replay;
          if (has_gradients) ++planned.replays_inside_windows;
        } else {
          ++calls.eager_forward[by_key];
          ++calls.eager_backward[by_key];
        }
        has_gradients = true;
      }
    }
  }
  planned.clears = recorded_rows ? 1 : 0;
  // Validations, and one call for the picture.
  planned.calls.inference = run.epochs.size() * batches_of(run.validated) + 1;
  return planned;
}

// One step: the shape and the terms of the first call are recorded.
part_counts loss_counts(const scheduled_run& run, bool is_on) {
  part_counts planned;
  std::optional<std::pair<std::int64_t, bool>> recorded;
  for (const epoch& windows : run.epochs) {
    for (const window& one : windows) {
      for (const micro_batch& batch : one) {
        const std::pair key{batch.rows, batch.has_labels};
        if (is_on && !recorded) {
          recorded = key;
          ++planned.captured;
        } else if (is_on && *recorded == key) {
          ++planned.replayed;
        } else {
          ++planned.eager;
        }
      }
    }
  }
  planned.clears = recorded ? 1 : 0;
  planned.eager += run.epochs.size() * batches_of(run.validated);
  return planned;
}

// Three steps a window, of which the last two come where it is applied. The first two have a
// recording for each set of parameters that have gradients: with those of the class, and without.
step_counts update_counts(const scheduled_run& run) {
  step_counts planned;
  std::set<std::pair<int, bool>> recorded;
  const auto count = [&](int step, bool with_class) {
    if (!run.records) {
      ++planned.eager;
      ++planned.eager_reasons["recording is off"];
    } else if (recorded.insert({step, with_class}).second) {
      ++planned.captured;
    } else {
      ++planned.replayed;
    }
  };
  std::size_t number = 0;
  for (const epoch& windows : run.epochs) {
    for (const window& one : windows) {
      const bool with_class = std::ranges::any_of(one, &micro_batch::has_labels);
      count(0, with_class);
      if (!run.applied.at(number++)) continue;
      count(1, with_class);
      count(2, true);
    }
  }
  return planned;
}

std::string difference_of(std::string_view what, std::uint64_t ran, std::uint64_t planned) {
  if (ran == planned) return {};
  return fmt::format("{} {}, planned {}", what, ran, planned);
}

template <class Counts>
using counter = std::pair<std::string_view, std::uint64_t Counts::*>;

// The first of them that differs.
template <class Counts, std::size_t Count>
std::string difference_of(const std::array<counter<Counts>, Count>& counters, const Counts& ran,
                          const Counts& planned) {
  for (const auto& [what, member] : counters) {
    if (std::string found = difference_of(what, ran.*member, planned.*member); !found.empty()) {
      return found;
    }
  }
  return {};
}

constexpr std::array<counter<grad_counts>, 8> of_calls{{
    {"forwards captured", &grad_counts::forward_capture},
    {"forwards shared", &grad_counts::forward_shared},
    {"forwards replayed", &grad_counts::forward_replay},
    {"backwards captured", &grad_counts::backward_capture},
    {"backwards replayed", &grad_counts::backward_replay},
    {"stale replays", &grad_counts::stale_replay},
    {"stale replays by the pool", &grad_counts::stale_by_pool},
    {"inferences", &grad_counts::inference},
}};
constexpr std::array<counter<part_counts>, 8> of_parts{{
    {"captured", &part_counts::captured},
    {"replayed", &part_counts::replayed},
    {"eager", &part_counts::eager},
    {"clears", &part_counts::clears},
    {"retirements", &part_counts::retirements},
    {"calls without low precision", &part_counts::low_precision},
    {"calls without a target", &part_counts::empty_targets},
    {"replays inside of windows", &part_counts::replays_inside_windows},
}};
constexpr std::array<counter<step_counts>, 4> of_steps{{
    {"captured", &step_counts::captured},
    {"replayed", &step_counts::replayed},
    {"eager", &step_counts::eager},
    {"evicted", &step_counts::evicted},
}};

std::string difference_of(const grad_counts& ran, const grad_counts& planned) {
  if (std::string found = difference_of(of_calls, ran, planned); !found.empty()) return found;
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

}  // namespace

run_counts planned_counts(const train_options& o, const scheduled_run& run) {
  const auto is_on = [&](bool graphed) { return run.records && graphed; };
  part_counts of_class = module_counts(run, is_on(o.graphed.heads), true);
  part_counts of_mask = module_counts(run, is_on(o.graphed.heads), false);
  of_class.clears = of_mask.clears;  // groups are cleared together
  return {{{"trunk", module_counts(run, is_on(o.graphed.network), false)},
           {group_names[class_group], of_class},
           {group_names[mask_group], of_mask},
           {"loss", loss_counts(run, is_on(o.graphed.loss)), true}},
          update_counts(run)};
}

std::string difference(const run_counts& ran, const run_counts& planned) {
  if (REPRISE_MUTANT(train_counts_are_not_held_to_the_plan)) return {};
  if (ran.parts.size() != planned.parts.size()) {
    return fmt::format("{} parts, planned {}", ran.parts.size(), planned.parts.size());
  }
  for (std::size_t i = 0; i < ran.parts.size(); ++i) {
    const part_counts& part = ran.parts[i].counts;
    std::string found = difference_of(part.calls, planned.parts[i].counts.calls);
    if (found.empty()) found = difference_of(of_parts, part, planned.parts[i].counts);
    if (!found.empty()) return fmt::format("{}: {}", ran.parts[i].part, found);
  }
  if (std::string found = difference_of(of_steps, ran.updates, planned.updates); !found.empty()) {
    return fmt::format("updates: {}", found);
  }
  return ran.updates.eager_reasons == planned.updates.eager_reasons
             ? ""
             : "updates: other reasons of eager runs";
}

}  // namespace reprise::train
