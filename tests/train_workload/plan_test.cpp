// The plan of a run's counts, in numbers worked out by hand, and what it says of counts that
// differ.
#include "workloads/train/plan.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using train::epoch;
using train::planned_counts;
using train::run_counts;
using train::train_options;

constexpr auto by_key = static_cast<std::size_t>(eager_cause::key);
constexpr auto off = static_cast<std::size_t>(eager_cause::suspended);
constexpr std::size_t trunk = 0;
constexpr std::size_t of_class = 1;
constexpr std::size_t of_mask = 2;
constexpr std::size_t loss = 3;

// Seven micro-batches an epoch: five full, one short, and a full one without labels alone.
const epoch mixed{{{0, 8}, {8, 5}, {13, 8}}, {{21, 8}, {29, 8}, {37, 8}}, {{45, 8, false}}};

run_counts planned(const epoch& windows, int epochs, const train_options& o = {},
                   bool records = true, std::vector<bool> applied = {}) {
  const std::vector<epoch> all(static_cast<std::size_t>(epochs), windows);
  applied.resize(all.size() * windows.size(), true);
  return planned_counts(o, {all, 1200, applied, records});
}

TEST(a_plan, records_the_first_shape_and_runs_others_eagerly) {
  const run_counts made = planned(mixed, 2);
  ASSERT_EQ(made.parts.size(), 4U);
  EXPECT_EQ(made.parts[trunk].part, "trunk");
  EXPECT_EQ(made.parts[loss].part, "loss");
  const part_counts& of_trunk = made.parts[trunk].counts;
  EXPECT_EQ(of_trunk.calls.forward_capture, 1U);
  EXPECT_EQ(of_trunk.calls.forward_replay, 11U);
  EXPECT_EQ(of_trunk.calls.backward_capture, 1U);
  EXPECT_EQ(of_trunk.calls.backward_replay, 11U);
  EXPECT_EQ(of_trunk.calls.eager_forward[by_key], 2U);
  EXPECT_EQ(of_trunk.calls.eager_backward[by_key], 2U);
  EXPECT_EQ(of_trunk.calls.stale_replay, 0U);
  EXPECT_EQ(of_trunk.clears, 1U);
  EXPECT_EQ(of_trunk.retirements, 0U);
}

TEST(a_plan, runs_a_class_without_labels_eagerly_and_forward_only) {
  const run_counts made = planned(mixed, 2);
  const part_counts& group = made.parts[of_class].counts;
  EXPECT_EQ(group.calls.forward_replay, 9U);
  EXPECT_EQ(group.calls.backward_replay, 9U);
  EXPECT_EQ(group.empty_targets, 2U);
  EXPECT_EQ(group.calls.eager_forward[off], 2U);
  EXPECT_EQ(group.calls.eager_backward[off], 0U);
  EXPECT_EQ(made.parts[of_mask].counts.calls.forward_replay, 11U);
  EXPECT_EQ(made.parts[of_mask].counts.empty_targets, 0U);
}

TEST(a_plan, counts_replays_onto_gradients_of_their_window) {
  const run_counts made = planned(mixed, 2);
  for (const std::size_t part : {trunk, of_class, of_mask}) {
    EXPECT_EQ(made.parts[part].counts.replays_inside_windows, 6U)
        << "the third of each first window, two of each second one";
  }
  EXPECT_EQ(planned({{{0, 8}}, {{8, 8}}}, 3).parts[trunk].counts.replays_inside_windows, 0U)
      << "a window of one adds to nothing";
  EXPECT_EQ(planned({{{0, 8}, {8, 8}}}, 1).parts[trunk].counts.replays_inside_windows, 1U);
  const run_counts half = planned({{{0, 8}, {8, 8}}, {{16, 8, false}, {24, 8}}}, 1);
  EXPECT_EQ(half.parts[trunk].counts.replays_inside_windows, 2U);
  EXPECT_EQ(half.parts[of_class].counts.replays_inside_windows, 1U)
      << "what had no labels has left it no gradient";
}

TEST(a_plan, of_the_loss_has_one_recording_and_knows_its_terms) {
  const part_counts of_loss = planned(mixed, 2).parts[loss].counts;
  EXPECT_EQ(of_loss.captured, 1U);
  EXPECT_EQ(of_loss.replayed, 9U);
  EXPECT_EQ(of_loss.eager, 2U + 2U + 2U * 3U) << "short, without labels, and validated by 500";
}

TEST(a_plan, takes_parts_that_are_off_for_eager) {
  train_options o;
  o.graphed = {false, true, false};
  const run_counts made = planned(mixed, 1, o);
  EXPECT_EQ(made.parts[trunk].counts.calls.eager_forward[off], 7U);
  EXPECT_EQ(made.parts[trunk].counts.calls.eager_backward[off], 7U);
  EXPECT_EQ(made.parts[trunk].counts.clears, 0U);
  EXPECT_EQ(made.parts[of_mask].counts.calls.forward_replay, 5U);
  EXPECT_EQ(made.parts[loss].counts.eager, 10U);
  EXPECT_EQ(made.updates.captured, 5U) << "what goes with any part is recorded";
}

// Three steps a window. Without labels in a window, the first two have another set of gradients.
TEST(a_plan, of_updates_has_a_recording_for_each_set_of_gradients) {
  const run_counts made = planned(mixed, 2);
  EXPECT_EQ(made.updates.captured, 5U);
  EXPECT_EQ(made.updates.replayed, 18U - 5U);
  EXPECT_EQ(made.updates.eager, 0U);
}

TEST(a_plan, leaves_updates_of_windows_that_were_skipped_out) {
  const run_counts made = planned(mixed, 2, {}, true, {false, true, false, true, true, true});
  EXPECT_EQ(made.updates.captured, 5U);
  EXPECT_EQ(made.updates.captured + made.updates.replayed, 6U + 2U * 4U);
}

TEST(a_plan, of_a_plain_run_records_nothing) {
  const run_counts made = planned(mixed, 2, {}, false);
  EXPECT_EQ(made.parts[of_class].counts.calls.eager_forward[off], 14U);
  EXPECT_EQ(made.parts[of_class].counts.calls.eager_backward[off], 12U);
  EXPECT_EQ(made.parts[of_class].counts.replays_inside_windows, 0U);
  EXPECT_EQ(made.parts[loss].counts.eager, 20U);
  EXPECT_EQ(made.updates.eager, 18U);
  EXPECT_EQ(made.updates.captured, 0U);
}

TEST(a_plan, names_the_first_count_that_differs) {
  const run_counts made = planned(mixed, 2);
  EXPECT_EQ(difference(made, made), "");
  run_counts ran = made;
  ran.parts[of_mask].counts.calls.stale_replay = 7;
  EXPECT_EQ(difference(ran, made), "mask: stale replays 7, planned 0");
  ran = made;
  ran.parts[trunk].counts.calls.eager_backward[by_key] = 1;
  EXPECT_EQ(difference(ran, made), "trunk: backwards eager by key 1, planned 2");
  ran = made;
  ran.parts[trunk].counts.replays_inside_windows = 0;
  EXPECT_EQ(difference(ran, made), "trunk: replays inside of windows 0, planned 6");
  ran = made;
  ran.parts[loss].counts.retirements = 1;
  EXPECT_EQ(difference(ran, made), "loss: retirements 1, planned 0");
  ran = made;
  ran.updates.replayed = 3;
  EXPECT_EQ(difference(ran, made), "updates: replayed 3, planned 13");
  ran = made;
  ran.updates.eager_reasons["fact changed"] = 1;
  EXPECT_EQ(difference(ran, made), "updates: other reasons of eager runs");
}

}  // namespace
}  // namespace reprise
