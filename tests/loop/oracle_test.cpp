#include "reprise/loop/oracle.hpp"

#include <cstring>

#include "tests/loop/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

using fading = test::fading<>;

// A value that the host gives in the body is baked into its recording.
struct baking {
  static constexpr bool may_record = true;
  struct request {
    int done = 0;
  };
  std::optional<step_call> next(request& r) {
    now = static_cast<float>(r.done / 2);
    if (r.done == 6) return std::nullopt;
    return step_call{&what, {}};
  }
  void advance(request& r, const step_result&) { ++r.done; }

  float now = 0;
  signature declared{"baking"};
  const output<float> steady = declared.out<float>("steady");
  const output<float> level = declared.out<float>("level");
  const step what{declared, [this](step_scope& run) {
                    fill(run, write<float>{run.make(steady, {4})}, 1.0F);
                    fill(run, write<float>{run.make(level, {4})}, now);
                  }};
};

class loop_oracle : public ::testing::TestWithParam<std::string> {
 protected:
  // Everything that one run needs, on a device of its own.
  struct side {
    explicit side(const std::string& spec, bool record)
        : on{spec}, cache{on.opened, {.record = record}} {}

    std::vector<tapped_step> tapped(int leap = 0) {
      fading::request r{on, {1, 2, 3}, 0.5F, 5, leap};
      return run_tapped(on.work, runner, loop, r);
    }
    std::vector<tapped_step> tapped_with_marks() {
      const auto marks = std::make_shared<mark_taps>();
      cache.observe(marks);
      fading::request r{on, {1, 2, 3}, 0.5F, 4};
      return run_tapped(on.work, runner, loop, r, marks);
    }

    test::bench on;
    fading loop{on.work};
    replay_cache cache;
    loop_runner runner{cache};
  };

  // Replaces the steps from the third on.
  static interceptor late(const step& by) {
    return {.name = "late", .begin = [&by] {
              return
                  [&by, seen = 0](const step_call&) mutable { return ++seen > 2 ? &by : nullptr; };
            }};
  }
};

INSTANTIATE_TEST_SUITE_P(devices, loop_oracle, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(loop_oracle, finds_nothing_between_an_eager_and_a_recorded_run) {
  side eager{GetParam(), false};
  side recorded{GetParam(), true};
  const auto reference = eager.tapped();
  const auto other = recorded.tapped();
  ASSERT_EQ(reference.size(), 5U);
  EXPECT_EQ(reference[4].taps.size(), 1U);
  EXPECT_FALSE(first_divergence(reference, other));
  EXPECT_EQ(recorded.cache.counts().replayed, 4U);
}

TEST_P(loop_oracle, finds_nothing_between_two_devices) {
  side here{"cpu", false};
  side there{GetParam(), true};
  EXPECT_FALSE(first_divergence(here.tapped(), there.tapped()));
}

TEST_P(loop_oracle, finds_the_step_at_which_a_baked_value_shows) {
  test::bench on{GetParam()};
  std::vector<std::vector<tapped_step>> runs;
  for (const bool record : {false, true}) {
    replay_cache cache{on.opened, {.record = record}};
    loop_runner runner{cache};
    baking loop;
    baking::request r;
    runs.push_back(run_tapped(on.work, runner, loop, r));
  }
  const auto found = first_divergence(runs[0], runs[1]);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 2U);
  EXPECT_EQ(found->tap, "level");
  EXPECT_EQ(found->error, 1.0);
  EXPECT_EQ(found->text(), "step 2 'baking', tap 'level': element 0 is 1 away");
}

TEST_P(loop_oracle, finds_the_mark_before_the_output_that_follows_from_it) {
  side here{"cpu", false};
  side there{GetParam(), false};
  const step skewed{there.loop.declared.variant("skewed"), [&](step_scope& run) {
                      const view<float> once = run.scratch<float>(run.shape(there.loop.x));
                      fill(run, write<float>{once}, 0.5F);
                      run.mark({"once", 0}, as_tensor(once, run.shape(there.loop.x)));
                      copy(run, read<float>{once},
                           write(run.make(there.loop.y, run.shape(there.loop.x))));
                    }};
  here.runner.install(late(here.loop.twice));
  there.runner.install(late(skewed));
  const auto found = first_divergence(here.tapped_with_marks(), there.tapped_with_marks());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 2U);
  EXPECT_EQ(found->tap, "once 0");
}

TEST_P(loop_oracle, agrees_on_marks_where_both_runs_pass_them) {
  side here{"cpu", false};
  side there{GetParam(), false};
  here.runner.install(late(here.loop.twice));
  there.runner.install(late(there.loop.twice));
  const auto reference = here.tapped_with_marks();
  EXPECT_EQ(reference[1].taps.size(), 1U);
  EXPECT_EQ(reference[2].taps.size(), 2U);
  EXPECT_EQ(reference[2].taps[0].name, "once 0");
  EXPECT_FALSE(first_divergence(reference, there.tapped_with_marks()));
}

TEST_P(loop_oracle, wants_the_same_steps_in_both) {
  side here{GetParam(), false};
  side there{GetParam(), false};
  const auto reference = here.tapped();
  const auto renamed = first_divergence(reference, there.tapped(3));
  ASSERT_TRUE(renamed);
  EXPECT_EQ(renamed->text(), "step 2 'fading': the other run has step 'leaping' here");
  const std::span shorter{reference.data(), 3};
  EXPECT_EQ(first_divergence(reference, shorter)->text(),
            "step 3 'fading': the other run has no such step");
  EXPECT_EQ(first_divergence(shorter, reference)->text(),
            "step 3 'fading': the reference has no such step");
}

tap numbered(std::string name, float value) {
  tap made{std::move(name), dtype::f32, {1}, std::vector<std::byte>(sizeof value)};
  std::memcpy(made.bytes.data(), &value, sizeof value);
  return made;
}

TEST(first_divergence_of, runs_without_a_tap_is_that_nothing_was_compared) {
  EXPECT_EQ(first_divergence({}, {})->text(), "no tap was compared");
  const std::vector<tapped_step> bare{{"bare", {}}, {"bare", {}}};
  EXPECT_EQ(first_divergence(bare, bare)->what, "no tap was compared");
}

TEST(first_divergence_of, two_steps_is_the_first_tap_in_their_order) {
  const tap a = numbered("a", 1);
  const tap b = numbered("b", 2);
  const tap other = numbered("b", 3);
  const std::vector<tapped_step> reference{{"s", {a, b}}, {"s", {a, b}}};
  const std::vector<tapped_step> wrong{{"s", {a, b}}, {"s", {a, other}}};
  EXPECT_EQ(first_divergence(reference, wrong)->text(), "step 1 's', tap 'b': element 0 is 1 away");
  const std::vector<tapped_step> lacking{{"s", {a, b}}, {"s", {a}}};
  EXPECT_EQ(first_divergence(reference, lacking)->text(),
            "step 1 's', tap 'b': the other run has no such tap");
  EXPECT_EQ(first_divergence(lacking, reference)->text(),
            "step 1 's', tap 'b': the reference has no such tap");
  const std::vector<tapped_step> swapped{{"s", {b, a}}};
  EXPECT_EQ(first_divergence({reference.data(), 1}, swapped)->text(),
            "step 0 's', tap 'a': the other run has tap 'b' here");
}

}  // namespace
}  // namespace reprise
