// The plan of a run's counts, in numbers worked out by hand, and what it says of counts that
// differ.
#include "workloads/memory/plan.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using memory::memory_options;
using memory::planned_counts;
using memory::run_counts;

constexpr auto held = static_cast<std::size_t>(eager_cause::hold);
constexpr auto off = static_cast<std::size_t>(eager_cause::suspended);

memory_options asked(const on_conflict& policy, std::int64_t accumulate, std::int64_t regions) {
  memory_options o;
  o.steps = 10;
  o.layers = 2;
  o.conflict = policy;
  o.accumulate = accumulate;
  o.regions = regions;
  return o;
}

TEST(a_plan, has_the_embedding_each_layer_of_the_network_and_the_loss) {
  const run_counts planned = planned_counts(asked(hold{}, 1, 1), true);
  ASSERT_EQ(planned.ops.size(), 8U);
  EXPECT_EQ(planned.ops.front().op, "embedding");
  EXPECT_EQ(planned.ops.back().op, "loss");
  for (const memory::op_counts& one : planned.ops) {
    EXPECT_EQ(one.counts.forward_capture, 1U);
    EXPECT_EQ(one.counts.forward_replay, 9U);
    EXPECT_EQ(one.counts.backward_replay, 9U);
    EXPECT_EQ(one.counts.stale_replay, 0U);
  }
}

TEST(a_plan, holds_all_but_the_first_of_a_window) {
  for (const memory::op_counts& one : planned_counts(asked(hold{}, 3, 1), true).ops) {
    EXPECT_EQ(one.counts.forward_replay, 9U);
    EXPECT_EQ(one.counts.eager_forward[held], 20U);
    EXPECT_EQ(one.counts.eager_backward[held], 20U);
    EXPECT_EQ(one.counts.stale_replay, 0U);
  }
}

// Of five micro-batches in two frames three and two take turns; in three frames two, two and one.
TEST(a_plan, knows_how_many_find_their_frame_taken) {
  const auto stale = [](const on_conflict& policy, std::int64_t accumulate) {
    return planned_counts(asked(policy, accumulate, 1), true).ops[1].counts.stale_replay;
  };
  EXPECT_EQ(stale(recompute{}, 1), 0U);
  EXPECT_EQ(stale(recompute{}, 3), 30U);
  EXPECT_EQ(stale(slots{1}, 3), 30U);
  EXPECT_EQ(stale(slots{2}, 5), 50U);
  EXPECT_EQ(stale(slots{3}, 5), 40U);
  EXPECT_EQ(stale(slots{5}, 5), 0U);
  EXPECT_EQ(stale(slots{9}, 5), 0U);
  EXPECT_EQ(planned_counts(asked(slots{9}, 5, 1), true).ops[1].counts.forward_capture, 5U);
}

TEST(a_plan, runs_what_lies_in_a_span_twice_and_holds_nothing_there) {
  const run_counts planned = planned_counts(asked(hold{}, 3, 4), true);
  const grad_counts& embedding = planned.ops.front().counts;
  EXPECT_EQ(embedding.eager_forward[held], 20U);
  for (std::size_t i = 1; i + 1 < planned.ops.size(); ++i) {
    EXPECT_EQ(planned.ops[i].counts.forward_capture, 1U);
    EXPECT_EQ(planned.ops[i].counts.forward_replay, 59U);
    EXPECT_EQ(planned.ops[i].counts.backward_replay, 29U);
    EXPECT_EQ(planned.ops[i].counts.stale_replay, 0U);
  }
  const grad_counts& loss = planned.ops.back().counts;
  EXPECT_EQ(loss.eager_forwards(), 0U) << "a span's replay has taken what it was held for";
  EXPECT_EQ(loss.stale_replay, 30U);
}

TEST(a_plan, of_a_plain_run_records_nothing) {
  const run_counts planned = planned_counts(asked(slots{2}, 3, 2), false);
  EXPECT_EQ(planned.ops.front().counts.eager_forward[off], 30U);
  EXPECT_EQ(planned.ops[1].counts.eager_forward[off], 60U);
  EXPECT_EQ(planned.ops[1].counts.eager_backward[off], 30U);
  EXPECT_EQ(planned.updates.eager, 10U);
  EXPECT_EQ(planned.updates.captured + planned.samples.captured, 0U);
}

TEST(a_plan, reads_all_bytes_of_a_sample_but_the_last) {
  memory_options o = asked(hold{}, 1, 1);
  o.prompt = "abc";
  o.sample = 4;
  EXPECT_EQ(planned_counts(o, true).samples.captured, 1U);
  EXPECT_EQ(planned_counts(o, true).samples.replayed, 5U);
  o.sample = 0;
  EXPECT_EQ(planned_counts(o, true).samples.captured, 0U);
}

TEST(a_plan, names_the_first_count_that_differs) {
  const run_counts planned = planned_counts(asked(recompute{}, 2, 1), true);
  EXPECT_EQ(difference(planned, planned), "");
  run_counts ran = planned;
  ran.ops[3].op = "head.norm";
  ran.ops[3].counts.stale_replay = 7;
  EXPECT_EQ(difference(ran, planned), "head.norm: stale replays 7, planned 20");
  ran = planned;
  ran.ops[0].counts.eager_backward[held] = 1;
  EXPECT_EQ(difference(ran, planned), "embedding: backwards eager by hold 1, planned 0");
  ran = planned;
  ran.updates.replayed = 3;
  EXPECT_EQ(difference(ran, planned), "optimizer: replayed 3, planned 9");
  ran = planned;
  ran.samples.eager_reasons["fact changed"] = 1;
  EXPECT_EQ(difference(ran, planned), "sample: other reasons of eager runs");
}

}  // namespace
}  // namespace reprise
