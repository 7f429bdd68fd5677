#include "reprise/loop/interceptor.hpp"

#include "tests/loop/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

using fading = test::fading<>;
using counted_reasons = std::map<std::string, std::uint64_t>;

class interceptor_test : public ::testing::TestWithParam<std::string> {
 protected:
  // Replaces every second step of a request by one that fades twice.
  interceptor every_second(bool graph_safe) {
    return {.name = "every second",
            .alters_distribution = true,
            .graph_safe = graph_safe,
            .begin = [this] {
              return [this, seen = 0](const step_call&) mutable -> const step* {
                return ++seen % 2 == 0 ? &loop.twice : nullptr;
              };
            }};
  }

  // Replaces each step by `by`, or by none where that is null, and counts how often it is asked.
  interceptor always(std::string name, const step* by, bool alters = false) {
    return {.name = std::move(name),
            .alters_distribution = alters,
            .graph_safe = true,
            .begin = [this, by] {
              return [this, by](const step_call&) {
                ++asked;
                return by;
              };
            }};
  }

  static std::vector<float> every_second_twice(std::vector<float> values, float rate, int steps) {
    for (int i = 0; i < steps; ++i) {
      for (int again = 0; again <= i % 2; ++again) {
        for (float& value : values) value *= rate * static_cast<float>(i + 1);
      }
    }
    return values;
  }

  std::vector<float> values_of(const fading::request& of) {
    return test::read_back<float>(on.work, of.x.all());
  }

  test::bench on{GetParam()};
  fading loop{on.work};
  replay_cache cache{on.opened};
  loop_runner runner{cache};
  fading::request r{on, {1, 2}, 0.5F, 6};
  int asked = 0;
};

INSTANTIATE_TEST_SUITE_P(devices, interceptor_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(interceptor_test, a_graph_safe_replacement_is_recorded_on_its_own) {
  runner.install(every_second(true));
  while (runner.step(on.work, loop, r)) {
  }
  EXPECT_EQ(values_of(r), every_second_twice({1, 2}, 0.5F, 6));
  EXPECT_EQ(cache.counts().captured, 2U) << "the loop's own step and its replacement";
  EXPECT_EQ(cache.counts().replayed, 4U);
  EXPECT_EQ(cache.counts().eager, 0U);
}

TEST_P(interceptor_test, any_other_replacement_runs_eagerly_and_says_whose_it_is) {
  runner.install(every_second(false));
  while (runner.step(on.work, loop, r)) {
  }
  EXPECT_EQ(values_of(r), every_second_twice({1, 2}, 0.5F, 6));
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 2U);
  EXPECT_EQ(cache.counts().eager_reasons, (counted_reasons{{"interceptor every second", 3}}));
}

TEST_P(interceptor_test, what_it_remembers_is_of_one_request) {
  runner.install(every_second(true));
  std::vector<fading::request> requests;
  requests.emplace_back(on, std::vector<float>{1, 2}, 0.5F, 5);
  requests.emplace_back(on, std::vector<float>{3, 4}, 0.25F, 2);
  requests.emplace_back(on, std::vector<float>{5, 6, 7}, 2.0F, 4);
  runner.run(on.work, loop, requests);
  EXPECT_EQ(values_of(requests[0]), every_second_twice({1, 2}, 0.5F, 5));
  EXPECT_EQ(values_of(requests[1]), every_second_twice({3, 4}, 0.25F, 2));
  EXPECT_EQ(values_of(requests[2]), every_second_twice({5, 6, 7}, 2.0F, 4));
}

TEST_P(interceptor_test, what_it_remembers_moves_with_the_request) {
  runner.install(every_second(true));
  runner.step(on.work, loop, r);
  fading::request moved = std::move(r);
  while (runner.step(on.work, loop, moved)) {
  }
  EXPECT_EQ(values_of(moved), every_second_twice({1, 2}, 0.5F, 6));
}

TEST_P(interceptor_test, the_first_replacement_wins_and_those_behind_it_are_not_asked) {
  const step thrice{loop.declared.variant("thrice"),
                    [](step_scope&) { FAIL() << "it came second"; }};
  runner.install(always("looks on", nullptr));
  runner.install(always("wins", &loop.twice));
  runner.install(always("comes second", &thrice));
  while (runner.step(on.work, loop, r)) {
  }
  EXPECT_EQ(asked, 2 * 6);
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 5U);
}

TEST_P(interceptor_test, a_step_that_is_never_captured_may_be_replaced_by_one_that_is) {
  fading::request leaping{on, {1, 2}, 0.5F, 4, 1};
  runner.install(always("graph safe", &loop.twice));
  while (runner.step(on.work, loop, leaping)) {
  }
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 3U);
}

TEST_P(interceptor_test, a_replacement_that_is_never_captured_runs_eagerly) {
  runner.install(always("leaps", &loop.leaping));
  while (runner.step(on.work, loop, r)) {
  }
  EXPECT_EQ(cache.counts().eager_reasons, (counted_reasons{{"draws on the host", 6}}));
}

TEST_P(interceptor_test, a_loop_that_did_not_opt_in_is_not_recorded_for_it) {
  using unasked = test::fading<false>;
  unasked other{on.work};
  unasked::request mine{on, {1, 2}, 0.5F, 3};
  runner.install(always("graph safe", &other.twice));
  while (runner.step(on.work, other, mine)) {
  }
  EXPECT_EQ(cache.counts().eager_reasons, (counted_reasons{{"loop did not opt in", 3}}));
}

TEST_P(interceptor_test, at_most_one_may_alter_the_distribution) {
  runner.install(always("first", nullptr, true));
  runner.install(always("harmless", nullptr));
  EXPECT_EQ(test::message_of<usage_error>([&] { runner.install(always("second", nullptr, true)); }),
            "interceptors 'first' and 'second' both alter the distribution; at most one may");
  while (runner.step(on.work, loop, r)) {
  }
  EXPECT_EQ(asked, 2 * 6) << "the one that was refused is not there";
}

TEST_P(interceptor_test, none_may_alter_the_distribution_in_exact_mode) {
  loop_runner exact{cache, {.exact = true}};
  const std::string said =
      test::message_of<usage_error>([&] { exact.install(every_second(true)); });
  EXPECT_TRUE(test::has(said, "'every second' alters the distribution and this runner is exact"))
      << said;
  exact.install(always("harmless", nullptr));
  while (exact.step(on.work, loop, r)) {
  }
  EXPECT_EQ(values_of(r), test::faded({1, 2}, 0.5F, 6));
}

TEST_P(interceptor_test, a_name_is_taken_once) {
  runner.install(always("same", nullptr));
  const std::string said =
      test::message_of<usage_error>([&] { runner.install(always("same", nullptr)); });
  EXPECT_TRUE(test::has(said, "'same' is installed already")) << said;
}

TEST_P(interceptor_test, one_that_begins_nothing_is_refused) {
  const std::string said =
      test::message_of<usage_error>([&] { runner.install({.name = "idle", .begin = {}}); });
  EXPECT_TRUE(test::has(said, "interceptor 'idle' has no `begin`")) << said;
}

// A step has recordings of its own, so the loop's is never served for it.
TEST_P(interceptor_test, a_replacement_with_the_signature_of_the_step_is_recorded_on_its_own) {
  const step disguised{loop.declared, [this](step_scope& run) { loop.fade_twice(run); }};
  runner.install(always("twice", &disguised));
  fading::request other{on, {1, 2}, 0.5F, 3};
  while (runner.step(on.work, loop, other)) {
  }
  EXPECT_EQ(values_of(other), (std::vector<float>{0.5625F, 1.125F}));
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 2U);
}

TEST_P(interceptor_test, a_replacement_that_has_other_handles_or_is_the_step_itself_is_refused) {
  signature unrelated{"unrelated"};
  const step stranger{unrelated, [](step_scope&) {}};
  for (const step* const other : {&stranger, &loop.fades}) {
    loop_runner one{cache};
    one.install(always("careless", other));
    const std::string said = test::message_of<usage_error>([&] { one.step(on.work, loop, r); });
    EXPECT_TRUE(test::has(said, "interceptor 'careless'")) << said;
    EXPECT_TRUE(test::has(said, "or with a signature::variant()")) << said;
  }
  EXPECT_EQ(r.done, 0);
  EXPECT_EQ(cache.counts().captured + cache.counts().eager, 0U);
}

TEST_P(interceptor_test, a_request_that_keeps_nothing_for_them_is_refused) {
  struct plain {
    struct request {};
    std::optional<step_call> next(request&) { return step_call{&of.fades, {}}; }
    void advance(request&, const step_result&) {}
    fading& of;
  };
  plain unprepared{loop};
  plain::request mine;
  runner.install(always("looks on", nullptr));
  const std::string said =
      test::message_of<usage_error>([&] { runner.step(on.work, unprepared, mine); });
  EXPECT_TRUE(test::has(said, "give the request a member `interceptions intercepted`")) << said;
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace reprise
