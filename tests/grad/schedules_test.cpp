// Any schedule of graphed ops gives what a plain run gives, bit for bit, and counts what the model
// of the rules says: on the simulated GPU, on the CPU, and on a GPU where one answers.
//
// REPRISE_SIM_SEEDS says how many schedules the simulated GPU is given; at most 2,000. With
// REPRISE_SCHEDULE="seed 7; scaled hold; f1.0 b1", as a failure ends, that one alone is played.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reprise/platform/explore.hpp"
#include "reprise/telemetry/log.hpp"
#include "scenarios/grad_player.hpp"
#include "scenarios/grad_schedule.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/observe.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise::test {
namespace {

using scenarios::grad_schedule;
using scenarios::model_slip;
using scenarios::play;
using scenarios::predicted_counts;
using scenarios::random_schedule;
using scenarios::schedule_from;
using scenarios::shortened;

constexpr std::uint64_t default_seeds = test::sanitized ? 40 : 800;
constexpr std::uint64_t seeds_of_real_devices = test::sanitized ? 30 : 200;

std::uint64_t simulated_seeds() {
  const char* const asked = std::getenv("REPRISE_SIM_SEEDS");
  return asked != nullptr ? std::min<std::uint64_t>(std::stoull(asked), 2000) : default_seeds;
}

std::vector<grad_schedule> to_be_played(std::uint64_t count) {
  if (const char* const pasted = std::getenv("REPRISE_SCHEDULE")) return {schedule_from(pasted)};
  std::vector<grad_schedule> all;
  for (std::uint64_t seed = 1; seed <= count; ++seed) all.push_back(random_schedule(seed));
  return all;
}

// What goes wrong on the simulated GPU; empty when nothing does.
std::string simulated_failure(const grad_schedule& of) {
  explore_options options;
  options.kernels = scenarios::scenario_kernels();
  const seed_run run = explore_seed(
      of.seed, [&](device_ref dev) { play(dev, of); }, options);
  return run.failure ? run.failure->kind + ": " + run.failure->what : std::string{};
}

std::string failure_on(device_ref dev, const grad_schedule& of,
                       model_slip slip = model_slip::none) {
  try {
    play(dev, of, slip);
  } catch (const error& failed) {
    return failed.what();
  }
  return {};
}

// Thousands of calls run eagerly as they should, and each op says so once.
class quietly : public testing::Test {
 protected:
  quietly() : before_{set_log_sink([](std::string_view) {})} {}
  ~quietly() override { set_log_sink(std::move(before_)); }

 private:
  log_sink before_;
};
using schedules = quietly;

device opened(const std::string& name) {
  return open_device(name, {.threads = 1}, scenarios::scenario_kernels());
}

TEST_F(schedules, hold_on_the_simulated_gpu) {
  for (const grad_schedule& of : to_be_played(simulated_seeds())) {
    if (simulated_failure(of).empty()) continue;
    const grad_schedule least = shortened(
        of, [](const grad_schedule& tried) { return !simulated_failure(tried).empty(); }, 400);
    FAIL() << simulated_failure(least) << "\n" << text_of(least);
  }
}

class on_a_device : public quietly, public testing::WithParamInterface<std::string> {};

TEST_P(on_a_device, schedules_hold) {
  const device dev = opened(GetParam());
  for (const grad_schedule& of : to_be_played(seeds_of_real_devices)) {
    if (failure_on(dev, of).empty()) continue;
    const grad_schedule least =
        shortened(of, [&](const grad_schedule& tried) { return !failure_on(dev, tried).empty(); });
    FAIL() << failure_on(dev, least) << "\n" << text_of(least);
  }
}

INSTANTIATE_TEST_SUITE_P(each, on_a_device, testing::ValuesIn(plain_devices()),
                         [](const auto& of) { return test_name(of.param); });

TEST_F(schedules, come_to_all_that_the_model_knows) {
  std::map<std::string, std::uint64_t> seen;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    for (const grad_counts& one : predicted_counts(random_schedule(seed))) {
      seen["forward_capture"] += one.forward_capture;
      seen["forward_shared"] += one.forward_shared;
      seen["forward_replay"] += one.forward_replay;
      seen["backward_capture"] += one.backward_capture;
      seen["backward_replay"] += one.backward_replay;
      seen["stale_replay"] += one.stale_replay - one.stale_by_pool;
      seen["stale_by_pool"] += one.stale_by_pool;
      seen["inference"] += one.inference;
      for (const eager_cause cause :
           {eager_cause::key, eager_cause::suspended, eager_cause::hold, eager_cause::precision}) {
        const std::string name{name_of(cause)};
        const auto i = static_cast<std::size_t>(cause);
        if (cause != eager_cause::precision) seen["eager forward: " + name] += one.eager_forward[i];
        seen["eager backward: " + name] += one.eager_backward[i];
      }
    }
  }
  EXPECT_EQ(seen.size(), 15U);
  for (const auto& [what, times] : seen) EXPECT_GT(times, 10U) << what;
}

TEST_F(schedules, are_read_back_as_they_are_written) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const grad_schedule of = random_schedule(seed);
    ASSERT_EQ(schedule_from(text_of(of)), of) << text_of(of);
    EXPECT_LE(of.ops.size(), 6U);
    EXPECT_LE(of.calls.size(), 40U);
    EXPECT_GE(of.calls.size(), 20U) << text_of(of);
  }
}

TEST_F(schedules, that_are_not_understood_are_refused_with_the_word) {
  const auto refusal = [](std::string_view text) {
    return message_of<usage_error>([&] { schedule_from(text); });
  };
  EXPECT_TRUE(has(refusal("scaled hold; f1.0"), "it begins with 'seed NUMBER'"));
  EXPECT_TRUE(has(refusal("seed 1"), "a schedule is"));
  EXPECT_TRUE(has(refusal("seed x; scaled hold; f1.0"), "'x' is not understood"));
  EXPECT_TRUE(has(refusal("seed 1; linear hold; f1.0"), "'linear' is not understood"));
  EXPECT_TRUE(has(refusal("seed 1; scaled hold; f1"), "'f1' is not understood"));
  EXPECT_TRUE(has(refusal("seed 1; scaled hold; f1.1"), "there are 1 ops"));
  EXPECT_TRUE(has(refusal("seed 1; scaled hold; f1.0+fast"), "there is no '+fast'"));
  EXPECT_TRUE(has(refusal("seed 1; scaled hold; q1"), "'q1' is not understood"));
  EXPECT_TRUE(has(refusal("seed 1; scaled sometimes; f1.0"), "sometimes"));
}

std::string counts_of(std::string_view text) {
  std::string all;
  for (const grad_counts& one : predicted_counts(schedule_from(text))) {
    const auto hold_at = static_cast<std::size_t>(eager_cause::hold);
    all += (all.empty() ? "" : "; ") + std::to_string(one.forward_capture) + "+" +
           std::to_string(one.forward_replay) + " forwards, " +
           std::to_string(one.eager_forward[hold_at]) + " held, " +
           std::to_string(one.backward_capture) + "+" + std::to_string(one.backward_replay) +
           " backwards, " + std::to_string(one.stale_replay) + " stale, " +
           std::to_string(one.stale_by_pool) + " by the pool";
  }
  return all;
}

// The orders of two micro-batches (G9), under each policy.
TEST(the_model, answers_a_second_forward_as_the_policy_says) {
  const std::string both = "f1.0 f2.0 b1 b2";
  EXPECT_EQ(counts_of("seed 1; rewinding hold; " + both),
            "1+0 forwards, 1 held, 1+0 backwards, 0 stale, 0 by the pool");
  EXPECT_EQ(counts_of("seed 1; rewinding recompute; " + both),
            "1+1 forwards, 0 held, 1+1 backwards, 2 stale, 0 by the pool");
  EXPECT_EQ(counts_of("seed 1; rewinding recompute; f1.0 f2.0 b2 b1"),
            "1+1 forwards, 0 held, 1+1 backwards, 1 stale, 0 by the pool");
  EXPECT_EQ(counts_of("seed 1; rewinding slots:2; " + both),
            "2+0 forwards, 0 held, 2+0 backwards, 0 stale, 0 by the pool");
  EXPECT_EQ(counts_of("seed 1; rewinding hold; f1.0 b1 f2.0 b2"),
            "1+1 forwards, 0 held, 1+1 backwards, 0 stale, 0 by the pool");
}

// A second backward of one call (G17), and tickets that nobody keeps.
TEST(the_model, counts_a_second_backward_as_stale_and_a_dropped_ticket_as_nothing_owed) {
  EXPECT_EQ(counts_of("seed 1; rewinding hold; f1.0 b1 b1"),
            "1+0 forwards, 0 held, 1+1 backwards, 1 stale, 0 by the pool");
  EXPECT_EQ(counts_of("seed 1; rewinding hold; f1.0 d1 f2.0 b2"),
            "1+1 forwards, 0 held, 1+0 backwards, 0 stale, 0 by the pool");
}

// An early layer is replayed before the backwards of later ones (G18).
TEST(the_model, makes_what_lies_behind_a_replay_stale) {
  const std::string ops = "seed 1; rewinding recompute; rewinding hold; ";
  EXPECT_EQ(counts_of(ops + "f1.0 f2.1 f3.0 b2"),
            "1+1 forwards, 0 held, 0+0 backwards, 0 stale, 0 by the pool; "
            "1+0 forwards, 0 held, 1+0 backwards, 1 stale, 1 by the pool");
  EXPECT_EQ(counts_of(ops + "f1.0 f2.1 b2 b1"),
            "1+0 forwards, 0 held, 1+0 backwards, 0 stale, 0 by the pool; "
            "1+0 forwards, 0 held, 1+0 backwards, 0 stale, 0 by the pool");
  // Captured behind the first backward: a pool of its own.
  EXPECT_EQ(counts_of(ops + "f1.0 b1 f2.1 f3.0 b2"),
            "1+1 forwards, 0 held, 1+0 backwards, 0 stale, 0 by the pool; "
            "1+0 forwards, 0 held, 1+0 backwards, 0 stale, 0 by the pool");
}

// Slots that are taken from a schedule leave nothing stale (the third stage of three has one).
TEST(the_model, finds_nothing_stale_where_slots_fit_the_schedule) {
  EXPECT_EQ(slots_for_pipeline(3, 0, 4), slots{3});
  EXPECT_EQ(slots_for_pipeline(3, 1, 4), slots{2});
  EXPECT_EQ(slots_for_pipeline(3, 2, 4), slots{1});
  EXPECT_EQ(counts_of("seed 1; rewinding slots:3; rewinding slots:2; rewinding slots:1; "
                      "f1.0 f2.1 f4.0 f3.2 b3 f7.0 f5.1 b2 f6.2 b6 b1 f10.0 f8.1 b5 f9.2 b9 b4 "
                      "f11.1 b8 f12.2 b12 b7 b11 b10"),
            "3+1 forwards, 0 held, 3+1 backwards, 0 stale, 0 by the pool; "
            "2+2 forwards, 0 held, 2+2 backwards, 0 stale, 0 by the pool; "
            "1+3 forwards, 0 held, 1+3 backwards, 0 stale, 0 by the pool");
}

// Spans of a network: the ops of one work use one frame in all of them.
TEST(the_model, lets_ops_of_one_work_share_a_frame_in_other_regions) {
  const std::vector<grad_counts> counts =
      predicted_counts(schedule_from("seed 1; rewinding hold work=1; rewinding hold work=1; "
                                     "[1 f1.0 ] d1 [2 f2.1 ] d2 (2 a2 ] b2 d2 (1 a1 ] b1 d1"));
  EXPECT_EQ(counts[0].forward_capture, 1U);
  EXPECT_EQ(counts[0].forward_replay, 1U);
  EXPECT_EQ(counts[1].forward_shared, 1U);
  EXPECT_EQ(counts[1].forward_replay, 1U);
  EXPECT_EQ(counts[1].backward_capture, 1U);
  EXPECT_EQ(counts[0].backward_replay, 1U);
  EXPECT_EQ(counts[0].stale_replay + counts[1].stale_replay, 0U);
}

// A model that forgets a rule is found out, and the schedule that shows it is short.
TEST_F(schedules, that_show_a_wrong_model_are_made_short) {
  const device dev = opened("cpu");
  const auto fails = [&](const grad_schedule& of) {
    return !failure_on(dev, of, model_slip::forgets_the_pool).empty();
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 60 && found != 3; ++seed) {
    const grad_schedule of = random_schedule(seed);
    if (!fails(of)) continue;
    ++found;
    const grad_schedule least = shortened(of, fails);
    EXPECT_TRUE(fails(least));
    EXPECT_LE(least.calls.size(), 5U) << text_of(least);
    EXPECT_LE(least.ops.size(), 2U) << text_of(least);
    EXPECT_TRUE(has(failure_on(dev, least, model_slip::forgets_the_pool), text_of(least)));
  }
  EXPECT_EQ(found, 3);
}

}  // namespace
}  // namespace reprise::test
