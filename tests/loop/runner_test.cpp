#include "reprise/loop/runner.hpp"

#include "tests/loop/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

using fading = test::fading<>;
using counted_reasons = std::map<std::string, std::uint64_t>;

// Every second step is another one with the same inputs.
struct alternating {
  static constexpr bool may_record = true;
  using request = fading::request;
  std::optional<step_call> next(request& r) {
    std::optional<step_call> call = of.next(r);
    if (call && r.done % 2 == 1) call->what = &of.twice;
    return call;
  }
  void advance(request& r, const step_result& done) { of.advance(r, done); }
  fading& of;
};

class runner_test : public ::testing::TestWithParam<std::string> {
 protected:
  // Three requests of two shapes and three lengths.
  template <class Loop = fading>
  std::vector<typename Loop::request> three(int leap = 0) {
    std::vector<typename Loop::request> all;
    all.emplace_back(on, std::vector<float>{1, 2, 3}, 0.5F, 4, leap);
    all.emplace_back(on, std::vector<float>{4, 5, 6, 7, 8}, 0.75F, 6, leap);
    all.emplace_back(on, std::vector<float>{-1, 9, 0.125F}, 1.25F, 2, leap);
    return all;
  }

  template <class Requests>
  std::vector<std::vector<float>> values_of(const Requests& requests) {
    std::vector<std::vector<float>> all;
    for (const auto& r : requests) all.push_back(test::read_back<float>(on.work, r.x.all()));
    return all;
  }

  // One request after the other, each by a runner of its own, and nothing recorded.
  std::vector<std::vector<float>> serial(int leap = 0) {
    std::vector<fading::request> requests = three(leap);
    for (fading::request& r : requests) {
      replay_cache plain{on.opened, {.record = false}};
      loop_runner alone{plain};
      while (alone.step(on.work, loop, r)) {
      }
    }
    return values_of(requests);
  }

  test::bench on{GetParam()};
  fading loop{on.work};
  replay_cache cache{on.opened};
  loop_runner runner{cache};
};

INSTANTIATE_TEST_SUITE_P(devices, runner_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(runner_test, interleaved_requests_give_the_bits_of_serial_ones) {
  std::vector<fading::request> requests = three();
  runner.run(on.work, loop, requests);
  EXPECT_EQ(values_of(requests), serial());
  EXPECT_EQ(values_of(requests)[0], test::faded({1, 2, 3}, 0.5F, 4));
  EXPECT_EQ(cache.counts().captured, 2U) << "one for each shape";
  EXPECT_EQ(cache.counts().replayed, 10U);
  EXPECT_EQ(cache.counts().eager, 0U);
}

TEST_P(runner_test, requests_may_be_stepped_in_any_order) {
  std::vector<fading::request> requests = three();
  for (const std::size_t i : {2U, 1U, 1U, 0U, 1U, 0U, 2U, 1U, 1U, 0U, 0U, 1U}) {
    EXPECT_TRUE(runner.step(on.work, loop, requests[i]));
  }
  EXPECT_EQ(values_of(requests), serial());
}

TEST_P(runner_test, a_finished_request_says_so_and_runs_nothing) {
  fading::request r{on, {1}, 0.5F, 1};
  EXPECT_TRUE(runner.step(on.work, loop, r));
  EXPECT_FALSE(runner.step(on.work, loop, r));
  EXPECT_FALSE(runner.step(on.work, loop, r));
  EXPECT_EQ(cache.counts().captured + cache.counts().replayed, 1U);
}

TEST_P(runner_test, a_step_that_is_never_captured_breaks_eagerly_between_replays) {
  std::vector<fading::request> requests = three(2);
  runner.run(on.work, loop, requests);
  EXPECT_EQ(values_of(requests), serial(2));
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 4U);
  EXPECT_EQ(cache.counts().eager_reasons, (counted_reasons{{"draws on the host", 6}}));
}

TEST_P(runner_test, a_loop_that_did_not_opt_in_runs_eagerly) {
  using unasked = test::fading<false>;
  unasked other{on.work};
  std::vector<unasked::request> requests = three<unasked>();
  runner.run(on.work, other, requests);
  EXPECT_EQ(values_of(requests), serial());
  EXPECT_EQ(cache.counts().eager_reasons, (counted_reasons{{"loop did not opt in", 12}}));
  EXPECT_EQ(cache.recordings(), 0U);
  EXPECT_EQ((*on.calls)[seam_call::capture], 0U);
}

// The body is looked up in the step that the loop yields now, though all have the same shapes.
TEST_P(runner_test, the_step_that_is_yielded_is_the_step_that_runs) {
  alternating both{loop};
  fading::request r{on, {1, 2}, 0.5F, 6};
  while (runner.step(on.work, both, r)) {
  }
  std::vector<float> expected{1, 2};
  for (int i = 0; i < 6; ++i) {
    for (int again = 0; again <= i % 2; ++again) {
      for (float& value : expected) value *= 0.5F * static_cast<float>(i + 1);
    }
  }
  EXPECT_EQ(test::read_back<float>(on.work, r.x.all()), expected);
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 4U);
}

TEST_P(runner_test, a_request_is_cancelled_between_steps_and_the_others_go_on) {
  std::vector<fading::request> requests = three();
  std::vector<int> asked(3);
  runner.run(on.work, loop, std::span{requests}, [&](std::size_t i) {
    ++asked[i];
    return i == 1 && requests[i].done == 2;
  });
  const auto alone = serial();
  const auto values = values_of(requests);
  EXPECT_EQ(values[0], alone[0]);
  EXPECT_EQ(values[1], test::faded({4, 5, 6, 7, 8}, 0.75F, 2)) << "two whole steps";
  EXPECT_EQ(values[2], alone[2]);
  EXPECT_EQ(requests[1].done, 2);
  EXPECT_EQ(asked, (std::vector<int>{5, 3, 3})) << "before each step and at the end, no more";
  EXPECT_EQ(cache.counts().captured + cache.counts().replayed, 4U + 2U + 2U);
}

TEST_P(runner_test, a_cancelled_request_goes_on_from_where_it_was) {
  std::vector<fading::request> requests = three();
  runner.run(on.work, loop, std::span{requests},
             [&](std::size_t i) { return requests[i].done == static_cast<int>(i); });
  EXPECT_EQ(requests[0].done, 0);
  EXPECT_EQ(requests[1].done, 1);
  EXPECT_EQ(requests[2].done, 2);
  runner.run(on.work, loop, requests);
  EXPECT_EQ(values_of(requests), serial());
}

TEST_P(runner_test, a_step_that_throws_leaves_its_request_where_it_was) {
  struct failing {
    using request = fading::request;
    std::optional<step_call> next(request& r) {
      std::optional<step_call> call = of.next(r);
      if (call && r.done == 2 && fails) call->with = call->with.subspan(1);
      return call;
    }
    void advance(request& r, const step_result& done) { of.advance(r, done); }
    fading& of;
    bool fails = true;
  };
  failing now_and_then{loop};
  std::vector<fading::request> requests = three();
  const std::string said = test::message_of<usage_error>(
      [&] { runner.run(on.work, now_and_then, std::span{requests}); });
  EXPECT_TRUE(test::has(said, "input 'x' is not bound")) << said;
  EXPECT_EQ(requests[0].done, 2);
  now_and_then.fails = false;
  runner.run(on.work, now_and_then, std::span{requests});
  EXPECT_EQ(values_of(requests), serial());
}

TEST_P(runner_test, a_call_without_a_step_is_refused) {
  struct empty_handed {
    struct request {};
    std::optional<step_call> next(request&) { return step_call{}; }
    void advance(request&, const step_result&) {}
  };
  empty_handed nothing;
  empty_handed::request r;
  const std::string said = test::message_of<usage_error>([&] { runner.step(on.work, nothing, r); });
  EXPECT_TRUE(test::has(said, "a loop yielded a call without a step")) << said;
}

TEST_P(runner_test, no_requests_are_nothing_to_do) {
  runner.run(on.work, loop, {});
  EXPECT_EQ(cache.counts().captured + cache.counts().eager, 0U);
}

}  // namespace
}  // namespace reprise
