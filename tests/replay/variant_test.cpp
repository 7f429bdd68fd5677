// A step that stands in for another one, and steps that run eagerly because their caller says so.
#include "reprise/replay/cache.hpp"
#include "tests/replay/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

class variant_test : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<float> result(const step_result& done) {
    return test::read_back(on.work, done[scaled.y].get());
  }

  test::bench on{GetParam()};
  test::scaling scaled{on.memory, on.work, 2.0F};
  const step filling{scaled.declared.variant("filling"), [this](step_scope& run) {
                       fill(run, write<float>{run.make(scaled.y, run.shape(scaled.x))}, 7.0F);
                     }};
  replay_cache cache{on.opened};
  std::vector<float> values{1, 2, 3};
};

INSTANTIATE_TEST_SUITE_P(devices, variant_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(variant_test, takes_the_handles_of_its_original_and_is_recorded_on_its_own) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(result(cache.run(on.work, scaled.what, {scaled.x.from_host(values)})),
              (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(result(cache.run(on.work, filling, {scaled.x.from_host(values)})),
              (std::vector<float>{7, 7, 7}));
  }
  EXPECT_EQ(filling.name(), "filling");
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 4U);
}

TEST_P(variant_test, may_declare_more_than_its_original) {
  version_counter table;
  signature more = scaled.declared.variant("with a table");
  more.fact("table", table);
  const step what{more, [this](step_scope& run) { scaled.what.run(run); }};
  cache.run(on.work, what, {scaled.x.from_host(values)});
  cache.run(on.work, scaled.what, {scaled.x.from_host(values)});
  table.bump();
  const step_result changed = cache.run(on.work, what, {scaled.x.from_host(values)});
  ASSERT_EQ(changed.how, ran::eager);
  EXPECT_EQ(changed.why->rule, "fact changed");
  EXPECT_EQ(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}).how, ran::replayed);
}

TEST_P(variant_test, a_step_runs_eagerly_for_a_reason_of_its_caller_and_leaves_its_recording) {
  cache.run(on.work, scaled.what, {scaled.x.from_host(values)});
  const auto why = std::make_shared<const reason>(reason{"asked to", {}});
  const step_result done = cache.run(on.work, scaled.what, {scaled.x.from_host(values)}, why);
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_EQ(done.why, why);
  EXPECT_EQ(result(done), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(cache.counts().eager_reasons.at("asked to"), 1U);
  EXPECT_EQ(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}).how, ran::replayed);
}

TEST_P(variant_test, a_step_that_its_caller_runs_eagerly_is_checked_as_any_other) {
  const auto why = std::make_shared<const reason>(reason{"asked to", {}});
  const std::string said =
      test::message_of<usage_error>([&] { cache.run(on.work, scaled.what, {}, why); });
  EXPECT_TRUE(test::has(said, "input 'x' is not bound")) << said;
  EXPECT_EQ(cache.counts().eager, 0U);
}

}  // namespace
}  // namespace reprise
