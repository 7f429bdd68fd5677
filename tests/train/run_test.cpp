// The events of a run (training_run.hpp): what each does to the parts, whatever fails.
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class training_runs : public training_case {
 protected:
  void both(const micro_batch& of) {
    expect_same(model.run(of), plain.run(of));
    expect_same_weights(model.own, plain.own);
  }
  void record() {
    run.start(s());
    for (unsigned i = 0; i < 2; ++i) both({.seed = i});
  }
  void expect_states(part_state state) {
    EXPECT_EQ(model.trunk.state(), state);
    EXPECT_EQ(model.heads.state(), state);
    EXPECT_EQ(model.loss.state(), state);
  }

  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
};

REPRISE_ON_EACH_DEVICE(training_runs);

TEST_P(training_runs, of_missing_parts_do_nothing) {
  training_run empty{{std::monostate{}, static_cast<graphed_network*>(nullptr),
                      static_cast<graphed_heads*>(nullptr), static_cast<graphed_loss*>(nullptr)}};
  const calls_since before{*desk.calls};
  empty.start(s());
  empty.batch_start();
  empty.end();
  empty.start(s());
  empty.failed();
  EXPECT_EQ(before.all(), 0U);
  EXPECT_TRUE(log.empty());
}

TEST_P(training_runs, that_have_not_started_do_nothing) {
  const calls_since before{*desk.calls};
  run.batch_start();
  run.end();
  run.failed();
  EXPECT_EQ(before.all(), 0U);
  expect_states(part_state::cleared);
}

TEST_P(training_runs, call_no_device_for_parts_that_have_recorded_nothing) {
  const calls_since before{*desk.calls};
  for (int i = 0; i < 2; ++i) {
    run.start(s());
    expect_states(part_state::ready);
    run.batch_start();
    run.end();
  }
  EXPECT_EQ(before.all(), 0U);
  EXPECT_EQ(told(model.trunk.counts()), "");
}

TEST_P(training_runs, clear_at_their_start_and_at_their_end) {
  record();
  run.end();
  expect_states(part_state::cleared);
  EXPECT_EQ(model.trunk.counts().clears, 1U);
  both({.seed = 2});
  EXPECT_EQ(model.trunk.counts().calls.forward_replay, 1U) << "nothing is recorded between runs";
  run.start(s());
  both({.seed = 3});
  run.start(s());
  expect_states(part_state::ready);
  EXPECT_EQ(model.trunk.counts().clears, 2U);
  EXPECT_EQ(model.heads.counts(0).clears, 2U);
  EXPECT_EQ(model.loss.counts().clears, 2U);
  both({.seed = 4});
  EXPECT_EQ(model.trunk.counts().calls.forward_capture, 3U);
  EXPECT_EQ(model.loss.counts().captured, 3U);
}

TEST_P(training_runs, leave_a_part_to_the_run_that_has_taken_it) {
  record();
  training_run other{{&model.heads}};
  other.start(s());
  EXPECT_EQ(model.heads.counts(0).clears, 1U);
  both({.seed = 2});
  // A foreign part hears none of these.
  auto lost = model.begin({.seed = 3});
  model.forward(lost);
  const auto plain_lost = plain.forward({.seed = 3});
  run.batch_start();
  both({.seed = 4});
  EXPECT_EQ(model.heads.counts(0).calls.eager_forward[static_cast<std::size_t>(eager_cause::hold)],
            1U);
  EXPECT_EQ(model.trunk.counts().calls.eager_forwards(), 0U);
  run.end();
  EXPECT_EQ(model.heads.state(), part_state::ready);
  EXPECT_EQ(model.heads.counts(0).clears, 1U);
  EXPECT_EQ(model.trunk.state(), part_state::cleared);
  model.compute_loss(lost);
  expect_same(model.backward(lost), plain.backward(plain_lost));
  other.end();
  EXPECT_EQ(model.heads.state(), part_state::cleared);
  EXPECT_EQ(model.heads.counts(0).clears, 2U);
}

TEST_P(training_runs, wait_for_nothing_but_at_a_clear) {
  record();
  for (unsigned i = 2; i < 5; ++i) {
    auto now = model.begin({.seed = i});
    const tensor<float> masks = desk.made(now.of.masks(), {now.of.rows, model_of::mask});
    const std::vector<std::int32_t> labels = now.of.labels();
    const calls_since before{*desk.calls};
    run.batch_start();
    model.forward(now);
    now.loss = model.loss(s(), {now.heads[0]->y, now.heads[1]->y},
                          {model.loss.targets<std::int32_t>(0).from_host(labels),
                           operand{model.loss.targets<float>(1), masks}},
                          now.scale);
    for (const std::size_t g : {0U, 1U}) {
      now.dfeatures[g] = model.heads.backward(s(), g, *now.heads[g], now.loss->gradients[g]);
    }
    now.dx = model.trunk.backward(s(), *now.trunk, now.dfeatures[0], true);
    EXPECT_EQ(before[seam_call::synchronize], 0U);
    EXPECT_EQ(before[seam_call::launch], 7U) << "one for each forward and backward, and the loss";
    EXPECT_EQ(before[seam_call::kernel], 0U);
  }
  const calls_since before{*desk.calls};
  run.end();
  EXPECT_GE(before[seam_call::synchronize], 1U);
}

TEST_P(training_runs, keep_what_a_pending_backward_needs_over_a_clear) {
  for (const bool is_over : {true, false}) {
    record();
    auto now = model.begin({.seed = 5});
    model.forward(now);
    model.compute_loss(now);
    const auto pending = plain.forward({.seed = 5});
    if (is_over) {
      run.end();
    } else {
      run.start(s());
      both({.seed = 6});
    }
    expect_same(model.backward(now), plain.backward(pending));
    expect_same_weights(model.own, plain.own);
    run.end();
  }
  EXPECT_EQ(
      model.trunk.counts().calls.eager_backward[static_cast<std::size_t>(eager_cause::suspended)],
      2U)
      << "what was let go replays no more";
}

class failing_drains : public training_runs {
 protected:
  // A forward and a backward of each of three modules, and a loss.
  static constexpr std::uint64_t drained = 7;

  // Also those of what goes behind its drain.
  std::uint64_t waits_of_an_end() {
    record();
    const calls_since before{*desk.calls};
    run.end();
    return before[seam_call::synchronize];
  }
  // What it throws when the n-th wait fails; empty where that is one of a destructor, which tells.
  std::string failing_end(std::uint64_t n) { return failing_end_of(run, n); }
  std::string failing_end_of(training_run& of, std::uint64_t n) {
    (void)reports::taken();
    desk.faults->fail_call(seam_call::synchronize, n);
    std::string said;
    try {
      of.end();
    } catch (const error& failed) {
      said = failed.what();
    }
    if (desk.faults->fired() && said.empty()) expect_told_by_a_destructor();
    desk.faults->fail_call(0);
    return said;
  }
  static void expect_told_by_a_destructor() {
    const std::vector<std::string> told_of = reports::taken();
    ASSERT_EQ(told_of.size(), 1U);
    EXPECT_TRUE(has(told_of.front(), "injected fault")) << told_of.front();
  }
  // Whatever drain has failed: nothing is recorded, and the next run is as any other.
  void expect_cleared() {
    expect_states(part_state::cleared);
    const std::uint64_t captured = model.trunk.counts().calls.forward_capture;
    run.start(s());
    for (unsigned i = 7; i < 9; ++i) both({.seed = i});
    EXPECT_EQ(model.trunk.counts().calls.forward_capture, captured + 1);
    run.end();
  }
};

REPRISE_ON_EACH_DEVICE(failing_drains);

TEST_P(failing_drains, are_raised_at_the_end_when_all_is_cleared) {
  const reports quiet;
  const std::uint64_t all = waits_of_an_end();
  std::uint64_t raised = 0;
  for (std::uint64_t n = 1; n <= all; ++n) {
    record();
    const std::uint64_t before = model.loss.counts().clears;
    raised += has(failing_end(n), "injected fault") ? 1 : 0;
    EXPECT_EQ(model.loss.counts().clears, before + 1);
    expect_cleared();
  }
  EXPECT_GE(raised, drained);
}

TEST_P(failing_drains, are_one_line_where_the_run_has_failed) {
  const reports quiet;
  const std::uint64_t all = waits_of_an_end();
  std::uint64_t told_of = 0;
  for (std::uint64_t n = 1; n <= all; ++n) {
    record();
    log.clear();
    (void)reports::taken();
    desk.faults->fail_call(seam_call::synchronize, n);
    run.failed();
    desk.faults->fail_call(0);
    const int lines = lines_with("a run that failed could not wait for all that it had queued: ");
    EXPECT_EQ(lines_with("injected fault"), lines);
    if (lines == 0) {
      expect_told_by_a_destructor();
    }
    EXPECT_LE(lines, 1);
    told_of += static_cast<std::uint64_t>(lines);
    expect_cleared();
  }
  EXPECT_GE(told_of, drained);
}

TEST_P(failing_drains, leave_the_error_of_a_run_that_throws) {
  const reports quiet;
  for (const bool fails : {true, false}) {
    log.clear();
    const std::string said = message_of<std::runtime_error>([&] {
      training_run inner{model.parts()};
      inner.start(s());
      for (unsigned i = 0; i < 2; ++i) both({.seed = i});
      if (fails) desk.faults->fail_call(seam_call::synchronize, 1);
      throw std::runtime_error{"the run's own error"};
    });
    desk.faults->fail_call(0);
    EXPECT_EQ(said, "the run's own error");
    EXPECT_EQ(lines_with("injected fault"), fails ? 1 : 0);
    expect_states(part_state::cleared);
  }
}

TEST_P(failing_drains, at_a_start_let_no_part_record) {
  const reports quiet;
  record();
  desk.faults->fail_call(seam_call::synchronize, 2);
  EXPECT_TRUE(has(message_of<error>([&] { run.start(s()); }), "injected fault"));
  desk.faults->fail_call(0);
  expect_states(part_state::cleared);
  both({.seed = 4});
  EXPECT_EQ(model.trunk.counts().calls.forward_capture, 1U);
  expect_cleared();
}

class parts_of_parts : public failing_drains {};

REPRISE_ON_EACH_DEVICE(parts_of_parts);

TEST_P(parts_of_parts, hear_the_events_of_the_one_that_holds_them) {
  model.trunk.hold(&model.heads);
  model.trunk.hold(&model.loss);
  model.trunk.hold(std::monostate{});
  training_run outer{{&model.trunk}};
  outer.start(s());
  expect_states(part_state::ready);
  for (unsigned i = 0; i < 3; ++i) both({.seed = i});
  EXPECT_EQ(model.heads.counts(0).calls.forward_replay, 2U);
  outer.end();
  expect_states(part_state::cleared);
  EXPECT_EQ(model.heads.counts(0).clears, 1U);
  EXPECT_EQ(model.loss.counts().clears, 1U);
  // One that another run has taken is cleared by that alone.
  outer.start(s());
  training_run other{{&model.loss}};
  other.start(s());
  for (unsigned i = 3; i < 5; ++i) both({.seed = i});
  outer.end();
  EXPECT_EQ(model.loss.state(), part_state::ready);
}

TEST_P(parts_of_parts, are_all_cleared_whichever_drain_fails) {
  const reports quiet;
  model.trunk.hold(&model.heads);
  model.trunk.hold(&model.loss);
  training_run outer{{&model.trunk}};
  const auto clears = [&] {
    return std::array{model.trunk.counts().clears, model.heads.counts(0).clears,
                      model.loss.counts().clears};
  };
  std::uint64_t raised = 0;
  for (std::uint64_t n = 1; n <= waits_of_an_end(); ++n) {
    outer.start(s());
    for (unsigned i = 0; i < 2; ++i) both({.seed = i});
    auto expected = clears();
    for (std::uint64_t& one : expected) ++one;
    raised += has(failing_end_of(outer, n), "injected fault") ? 1 : 0;
    EXPECT_EQ(clears(), expected);
    expect_states(part_state::cleared);
  }
  EXPECT_GE(raised, drained);
}

TEST_P(parts_of_parts, do_not_hold_the_one_that_holds_them) {
  weights own{desk};
  graphed_network inner{own.class_head(), desk.budget};
  inner.hold(&model.trunk);
  EXPECT_EQ(message_of<usage_error>([&] { model.trunk.hold(&inner); }),
            "graphed network 'class' is to be held by a part that it holds itself; let the outer "
            "one hold the inner one");
  EXPECT_THROW(inner.hold(&inner), usage_error);
}

}  // namespace
}  // namespace reprise::test
