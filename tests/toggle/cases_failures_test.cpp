// X10: a change that fails half-way is not done, is tried once more, and then ends the session.
#include "reprise/telemetry/log.hpp"
#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

class failure_cases : public testing::TestWithParam<std::string> {
 protected:
  failure_cases() {
    set_log_sink([](std::string_view) {});
  }
  ~failure_cases() override { set_log_sink({}); }

  failing_device on{GetParam()};
  const digits x = on.made();
  toggle_session session{on.opened, toggle_mode::host_lazy};
  const recorded of = record(session, on.s, x, 7);
  const executable step = of.made.instantiate(on.s);

  refused why_refused() {
    try {
      step.launch(on.s);
    } catch (const switch_refusal& refusal) {
      last = refusal.what();
      EXPECT_FALSE(has(last, "\n"));
      return refusal.why();
    }
    ADD_FAILURE() << "launched";
    return refused::stale;
  }
  std::string last;
};

TEST_P(failure_cases, X10_a_half_applied_change_is_not_taken_for_done) {
  session.bind(of.made, step);
  session.set(works({0, 6}));  // five calls
  on.plan->fail_call(seam_call::enable, 3);
  const calls_since now{*on.counts};
  EXPECT_EQ(why_refused(), refused::not_applied);
  EXPECT_TRUE(has(last, "launch again")) << last;
  EXPECT_EQ(now[seam_call::launch], 0U);
  EXPECT_EQ(now[seam_call::enable], 3U);
  const calls_since again{*on.counts};
  EXPECT_EQ(digits_of(on.s, step, x), 17);
  EXPECT_EQ(again[seam_call::enable], 3U) << "the one that failed, and the two behind it";
  EXPECT_TRUE(session.active());
  EXPECT_EQ(digits_of(on.s, step, x), 17);
  EXPECT_EQ(again[seam_call::enable], 3U);
}

TEST_P(failure_cases, X10_a_try_that_is_wanted_otherwise_by_then_does_what_is_needed_by_then) {
  session.bind(of.made, step);
  session.set(works({0, 6}));
  on.plan->fail_call(seam_call::enable, 3);
  EXPECT_EQ(why_refused(), refused::not_applied);
  session.set(all_but(7, {}));
  const calls_since again{*on.counts};
  EXPECT_EQ(digits_of(on.s, step, x), 1234567);
  EXPECT_EQ(again[seam_call::enable], 3U) << "two that are off, and one that nobody knows of";
}

TEST_P(failure_cases, X10_a_second_failure_ends_the_session_and_restores_all) {
  session.bind(of.made, step);
  session.set(works({0, 6}));
  on.plan->fail_call(seam_call::enable, 3);
  EXPECT_EQ(why_refused(), refused::not_applied);
  on.plan->fail_call(seam_call::enable, 2);
  const calls_since now{*on.counts};
  EXPECT_EQ(why_refused(), refused::session_ended);
  EXPECT_TRUE(has(last, "unwatched")) << last;
  EXPECT_EQ(now[seam_call::launch], 0U);
  EXPECT_FALSE(session.active());
  EXPECT_EQ(device_ref{on.opened}.set_gate(nullptr), nullptr);
  EXPECT_EQ(digits_of(on.s, step, x), 1234567) << "as it was found";
  EXPECT_TRUE(has(message_of<usage_error>([&] { session.set(works({0})); }), "clear()"));
  session.clear();
  const recorded fresh = record(session, on.s, x, 2);
  const executable anew = fresh.made.instantiate(on.s);
  session.bind(fresh.made, anew);
  session.set(works({1}));
  EXPECT_EQ(digits_of(on.s, anew, x), 2) << "the remedy";
}

TEST_P(failure_cases, X10_an_executable_whose_nodes_nobody_knows_is_never_launched) {
  const reports told;
  session.bind(of.made, step);
  session.set(works({0, 6}));
  *on.switches_nothing = true;
  EXPECT_EQ(why_refused(), refused::not_applied);
  EXPECT_EQ(why_refused(), refused::session_ended);
  EXPECT_EQ(reports::taken().size(), 1U) << "that it could not be switched back";
  *on.switches_nothing = false;
  const calls_since now{*on.counts};
  EXPECT_EQ(why_refused(), refused::unknown_state);
  EXPECT_TRUE(has(last, "instantiate its graph anew")) << last;
  EXPECT_EQ(now.all(), 0U);
  const executable anew = of.made.instantiate(on.s);
  EXPECT_EQ(digits_of(on.s, anew, x), 1234567) << "the remedy";
}

TEST_P(failure_cases, X10_a_change_at_once_that_fails_is_tried_once_more_too) {
  toggle_session eager{on.opened, toggle_mode::host_eager};
  const recorded made = record(eager, on.s, x, 4);
  const executable run = made.made.instantiate(on.s);
  eager.bind(made.made, run);
  on.plan->fail_call(seam_call::enable, 2);
  EXPECT_THROW(eager.set(works({0})), switch_refusal);
  const calls_since now{*on.counts};
  EXPECT_EQ(digits_of(on.s, run, x), 1) << "before its launch";
  EXPECT_EQ(now[seam_call::enable], 2U);
  on.s.synchronize();
  *on.switches_nothing = true;
  EXPECT_THROW(eager.set(works({1})), switch_refusal);
  EXPECT_TRUE(eager.active());
  const reports told;
  EXPECT_THROW(eager.set(works({2})), switch_refusal);
  EXPECT_FALSE(eager.active());
  EXPECT_EQ(reports::taken().size(), 1U);
}

// Somebody else's executable is looked at, and the driver's way to say no is an error.
TEST_P(failure_cases, an_executable_that_refuses_to_be_looked_at_is_nobodys) {
  session.bind(of.made, step);
  const graph other = capture(on.s, [&](stream_ref c) { append(c, x, 4); });
  const executable foreign = other.instantiate(on.s);
  *on.switches_nothing = true;
  EXPECT_EQ(digits_of(on.s, foreign, x), 5);
  *on.switches_nothing = false;
  EXPECT_TRUE(session.active());
  const recorded late = record(session, on.s, x, 2);
  const executable unbound = late.made.instantiate(on.s);
  on.plan->fail_call(seam_call::enable, 1);
  EXPECT_THROW(unbound.launch(on.s), switch_refusal) << "one failure is none of these";
  EXPECT_TRUE(on.plan->fired());
}

TEST_P(failure_cases, a_fresh_executable_that_cannot_be_had_is_asked_for_again_later) {
  constexpr std::size_t nodes = 300;  // 30 us a launch, once all are touched: 1500 in 50
  const digits many{on.memory, nodes, on.s};
  toggle_session other{on.opened, toggle_mode::host_lazy};
  const recorded large = record(other, on.s, many, nodes);
  const executable run = large.made.instantiate(on.s);
  other.bind(large.made, run);
  other.set(works({}));
  run.launch(on.s);
  other.set(all_but(nodes, {}));
  on.plan->fail_call(seam_call::instantiate, 1);
  for (int i = 0; i < 60; ++i) run.launch(on.s);
  EXPECT_TRUE(on.plan->fired());
  EXPECT_EQ(other.counts().repairs, 0U);
  for (int i = 0; i < 60; ++i) run.launch(on.s);
  EXPECT_EQ(other.counts().repairs, 1U);
  EXPECT_EQ(read_back(on.s, many), std::vector<std::int32_t>(nodes, 1));
}

// The n-th call of a launch fails, for every n until none does, in every mode that may fail there.
TEST_P(failure_cases, whichever_call_of_a_change_fails_the_next_launch_is_right) {
  for (const toggle_mode mode : {toggle_mode::host_lazy, toggle_mode::variants}) {
    SCOPED_TRACE(name_of(mode));
    toggle_session other{on.opened, mode};
    const recorded made = record(other, on.s, x, 4);
    const executable run = made.made.instantiate(on.s);
    other.bind(made.made, run);
    int failures = 0;
    for (std::uint64_t n = 1;; ++n) {
      ASSERT_LT(n, 50U);
      const switch_set wanted = n % 2 == 0 ? works({0, 1}) : works({2, 3});
      other.set(wanted);
      fill(on.s, write<std::int32_t>{x}, 0);
      on.plan->fail_call(n);
      try {
        run.launch(on.s);
      } catch (const error&) {
        ++failures;
      }
      const bool fired = on.plan->fired();
      on.plan->fail_call(0);
      EXPECT_EQ(digits_of(on.s, run, x), digits_in(4, wanted)) << n;
      if (!fired) break;
    }
    EXPECT_GT(failures, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(devices, failure_cases, testing::Values("cpu", "sim:seed=1", "sim:seed=2"),
                         [](const auto& of) { return test_name(of.param); });

}  // namespace
}  // namespace reprise::test
