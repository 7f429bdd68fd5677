// Every reason and refusal names a remedy. Here each is done as it says, and the step replays, or
// records, again.
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class remedies : public replay_case {
 protected:
  step_result run(replay_cache& in, weighted& of) {
    return in.run(s(), of.what(), {of.x.from_host(values)});
  }
  // The last run was eager, for this rule, and its remedy has these words.
  static void expect_eager(const step_result& done, const char* rule, const char* remedy) {
    ASSERT_EQ(done.how, ran::eager);
    EXPECT_EQ(done.why->rule, rule);
    EXPECT_TRUE(has(done.why->text(), remedy)) << done.why->text();
  }

  floats values{1, 2, 3};
};

REPRISE_ON_EACH_DEVICE(remedies);

TEST_P(remedies, what_retires_a_recording_is_recorded_again_at_the_next_call) {
  weighted of{desk, 2};
  version_counter adapter;
  std::uint64_t mode = 0;
  of.declared.fact("adapter", adapter);
  of.declared.fact("mode", [&] { return mode; });
  buffer<float> moved = desk.filled({2});
  replay_cache cache{dev(), {.churn_limit = 100}};
  ASSERT_EQ(run(cache, of).how, ran::captured);
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"recorded again at its new address", [&] { of.weight.value = as_tensor(moved.all()); }},
      {"recorded again with the new weights", [&] { of.weight.version.bump(); }},
      {"recorded again under the new version", [&] { adapter.bump(); }},
      {"recorded again under the new value", [&] { mode = 1; }},
      {"recorded again where it lies now",
       [&] {
         moved = {};
         moved = desk.filled({2});
         of.weight.value = as_tensor(moved.all());
       }},
  };
  for (const auto& [remedy, change] : changes) {
    SCOPED_TRACE(remedy);
    change();
    const step_result done = run(cache, of);
    ASSERT_EQ(done.how, ran::eager);
    EXPECT_TRUE(has(done.why->text(), remedy)) << done.why->text();
    EXPECT_EQ(run(cache, of).how, ran::captured);
    EXPECT_EQ(run(cache, of).how, ran::replayed);
  }
}

TEST_P(remedies, a_value_that_is_set_back_replays) {
  weighted of{desk, 2};
  std::uint64_t mode = 0;
  of.declared.fact(
      "mode", [&] { return mode; }, on_breach::run_eagerly);
  replay_cache cache{dev()};
  run(cache, of);
  mode = 1;
  expect_eager(run(cache, of), "fact changed", "set it back to the value of the recording");
  mode = 0;
  EXPECT_EQ(run(cache, of).how, ran::replayed);
}

TEST_P(remedies, retire_after_records_under_a_version_that_stays) {
  weighted of{desk, 2};
  version_counter casts;
  of.declared.fact("casts", casts, on_breach::run_eagerly);
  replay_cache cache{dev(), {.retire_after = 2}};
  run(cache, of);
  casts.bump();
  expect_eager(run(cache, of), "fact changed", "cache_options::retire_after");
  EXPECT_EQ(run(cache, of).how, ran::eager);
  EXPECT_EQ(run(cache, of).how, ran::captured);
  EXPECT_EQ(run(cache, of).how, ran::replayed);
}

class nobody : public mark_observer {
 public:
  void on_mark(step_scope&, point, const tensor_ref&) override {}
};

TEST_P(remedies, an_observer_that_is_taken_off_lets_steps_replay) {
  weighted of{desk, 2};
  replay_cache cache{dev()};
  run(cache, of);
  cache.observe(std::make_shared<nobody>());
  expect_eager(run(cache, of), "observer installed", "take it off to replay again");
  cache.stop_observing();
  EXPECT_EQ(run(cache, of).how, ran::replayed);
}

TEST_P(remedies, a_step_is_admitted_by_more_uses_by_preparing_it_or_by_a_lower_limit) {
  const auto first_of = [&](weighted& of, replay_cache& cache) {
    expect_eager(run(cache, of), "not admitted yet", "run it more often, prepare it, or lower");
  };
  weighted of{desk, 2};
  {
    replay_cache cache{dev(), {.admit_after = 3}};
    first_of(of, cache);
    EXPECT_EQ(run(cache, of).how, ran::eager);
    EXPECT_EQ(run(cache, of).how, ran::captured);
  }
  {
    replay_cache cache{dev(), {.admit_after = 3}};
    first_of(of, cache);
    EXPECT_EQ(cache.prepare(s(), of.what(), {{3, 1}}), nullptr);
    EXPECT_EQ(run(cache, of).how, ran::replayed);
  }
  replay_cache cache{dev(), {.admit_after = 1}};
  EXPECT_EQ(run(cache, of).how, ran::captured);
}

TEST_P(remedies, a_step_that_was_not_prepared_is_prepared) {
  weighted of{desk, 2};
  replay_cache cache{dev(), {.prepared_only = true}};
  expect_eager(run(cache, of), "not prepared", "prepare the step for these shapes");
  EXPECT_EQ(cache.prepare(s(), of.what(), {{3, 1}}), nullptr);
  EXPECT_EQ(run(cache, of).how, ran::replayed);
  const floats more{1, 2, 3, 4};
  expect_eager(cache.run(s(), of.what(), {of.x.from_host(more)}), "not prepared",
               "prepare the step for these shapes");
  EXPECT_EQ(cache.prepare(s(), of.what(), {{4, 1}}), nullptr);
  EXPECT_EQ(cache.run(s(), of.what(), {of.x.from_host(more)}).how, ran::replayed);
}

TEST_P(remedies, a_key_that_thrashed_gets_one_more_try_and_facts_that_stay_let_it_pay) {
  weighted of{desk, 2};
  replay_cache cache{dev(), {.churn_limit = 2}};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run(cache, of).how, ran::captured);
    of.weight.version.bump();
    EXPECT_EQ(run(cache, of).how, ran::eager);
  }
  expect_eager(run(cache, of), "churn", "change facts less often; it is tried again after 256");
  for (std::uint64_t i = 1; i < key_history::churn_hold - 1; ++i) {
    ASSERT_EQ(run(cache, of).how, ran::eager) << i;
  }
  EXPECT_EQ(run(cache, of).how, ran::captured);
  for (std::uint64_t i = 0; i < key_history::paid_off; ++i) {
    EXPECT_EQ(run(cache, of).how, ran::replayed);
  }
  of.weight.version.bump();
  EXPECT_EQ(run(cache, of).how, ran::eager);
  EXPECT_EQ(run(cache, of).how, ran::captured) << "that one had paid";
}

TEST_P(remedies, what_broke_a_capture_is_mended_and_the_next_call_records) {
  weighted of{desk, 2};
  bool broken = true;
  of.more = [&](step_scope& run) {
    if (broken) stream_ref{run}.synchronize();
  };
  replay_cache cache{dev()};
  expect_eager(run(cache, of), "capture failed", "mend what it says and the next call records");
  broken = false;
  EXPECT_EQ(run(cache, of).how, ran::captured);
}

TEST_P(remedies, a_capture_that_kept_failing_is_mended_and_prepared_or_declared_eager) {
  weighted of{desk, 2};
  bool broken = true;
  of.more = [&](step_scope& run) {
    if (broken) stream_ref{run}.synchronize();
  };
  replay_cache cache{dev(), {.failure_limit = 2}};
  run(cache, of);
  run(cache, of);
  expect_eager(run(cache, of), "capture keeps failing",
               "mend what the first one said and prepare the step");
  broken = false;
  EXPECT_EQ(run(cache, of).how, ran::eager) << "nobody tries it unasked";
  EXPECT_EQ(cache.prepare(s(), of.what(), {{3, 1}}), nullptr);
  EXPECT_EQ(run(cache, of).how, ran::replayed);
  const step never{of.declared.variant("eager"), [&](step_scope& run) { of.what().run(run); },
                   eager_only{"it waits for the host"}};
  broken = true;
  EXPECT_EQ(cache.run(s(), never, {of.x.from_host(values)}).why->rule, "it waits for the host");
}

TEST_P(remedies, what_the_budget_refused_fits_a_larger_one_and_a_smaller_step_fits_this_one) {
  signature declared{"large"};
  const auto x = declared.in<float>("x", {any});
  const step what{declared, [&](step_scope& run) {
                    const view<float> copied = run.scratch<float>({run.shape(x)[0] * 1000});
                    fill(run, write<float>{copied}, 1.0F);
                  }};
  const auto go = [&](replay_cache& cache, std::size_t length) {
    const floats in(length, 1.0F);
    return cache.run(s(), what, {x.from_host(in)});
  };
  byte_budget small{std::size_t{256} << 10};
  {
    replay_cache cache{dev(), {.budget = &small}};
    expect_eager(go(cache, 1000), "budget", "raise the budget, or record a smaller step");
    EXPECT_EQ(go(cache, 1).how, ran::captured);
  }
  byte_budget raised{std::size_t{64} << 20};
  replay_cache cache{dev(), {.budget = &raised}};
  EXPECT_EQ(go(cache, 1000).how, ran::captured);
}

TEST_P(remedies, a_step_with_breaks_is_run_once_instead_of_prepared) {
  weighted of{desk, 2};
  of.more = [](step_scope& run) { run.eagerly("a pause", [](stream_ref) {}); };
  replay_cache cache{dev()};
  const auto why = cache.prepare(s(), of.what(), {{3, 1}});
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->rule, "step has breaks");
  EXPECT_TRUE(has(why->text(), "run the step once: that records it"));
  EXPECT_EQ(run(cache, of).how, ran::captured);
  EXPECT_EQ(run(cache, of).how, ran::replayed);
}

TEST_P(remedies, an_output_that_is_held_is_released_cloned_or_moved_aside) {
  weighted of{desk, 2, input_mode::staged, on_overwrite::refuse};
  replay_cache cache{dev()};
  run(cache, of);
  std::optional<lease<float>> held{run(cache, of)[of.y]};
  expect_eager(run(cache, of), "output held",
               "release the lease, clone the output, or declare it on_overwrite::move_aside");
  held.reset();
  step_result done = run(cache, of);
  EXPECT_EQ(done.how, ran::replayed);
  const buffer<float> cloned = done[of.y].clone(s(), desk.memory);
  EXPECT_EQ(run(cache, of).how, ran::replayed);
  EXPECT_EQ(desk.values_of(cloned), times(2, values));
  weighted mover{desk, 2, input_mode::staged, on_overwrite::move_aside};
  run(cache, mover);
  held.emplace(run(cache, mover)[mover.y]);
  EXPECT_EQ(run(cache, mover).how, ran::replayed);
}

TEST_P(remedies, a_recording_that_is_running_runs_again_outside_of_its_breaks) {
  weighted of{desk, 2};
  replay_cache cache{dev()};
  step_result inner;
  bool again = false;
  of.more = [&](step_scope& run) {
    run.eagerly("again", [&](stream_ref on) {
      if (!std::exchange(again, false)) return;
      inner = cache.run(on, of.what(), {of.x.from_host(values)});
    });
  };
  run(cache, of);
  again = true;
  EXPECT_EQ(run(cache, of).how, ran::replayed);
  expect_eager(inner, "recording is running", "run the step outside of its own breaks");
  EXPECT_EQ(run(cache, of).how, ran::replayed);
}

TEST_P(remedies, a_write_that_nobody_named_is_named_as_state_or_overwrites_or_goes_to_scratch) {
  const buffer<float> foreign = desk.filled({0, 0, 0});
  enum class as { unnamed, state, overwrites, scratch };
  for (const as how : {as::unnamed, as::state, as::overwrites, as::scratch}) {
    signature declared{"writing"};
    const auto x = declared.in<float>("x", {any});
    if (how == as::state) declared.state("foreign", as_tensor(foreign.all()));
    if (how == as::overwrites) declared.overwrites("foreign", as_tensor(foreign.all()));
    const step what{declared, [&](step_scope& run) {
                      const view<float> to =
                          how == as::scratch ? run.scratch<float>(run.shape(x)) : foreign.all();
                      launch(run, scale_here, read(run[x]), write<float>{to}, 2.0F);
                    }};
    replay_cache cache{dev()};
    const step_result done = cache.run(s(), what, {x.from_host(values)});
    if (how == as::unnamed) {
      expect_eager(done, "capture failed",
                   "name them as state or overwrites, or use the run's scratch");
    } else {
      EXPECT_EQ(done.how, ran::captured);
      EXPECT_EQ(cache.run(s(), what, {x.from_host(values)}).how, ran::replayed);
    }
  }
}

TEST_P(remedies, draws_name_a_counter_and_optional_inputs_are_asked_for) {
  for (const bool mended : {false, true}) {
    philox_counter counter{1};
    signature declared{"careless"};
    const auto x = declared.optional_in<float>("x", {any});
    if (mended) declared.random(counter);
    const step what{declared, [&](step_scope& run) {
                      if (!mended || run.given(x)) (void)run[x];
                      (void)run.draws(1);
                    }};
    replay_cache cache{dev()};
    const auto go = [&](bool bound) {
      return bound ? cache.run(s(), what, {x.from_host(values)}) : cache.run(s(), what, {});
    };
    if (mended) {
      EXPECT_EQ(go(true).how, ran::captured);
      EXPECT_EQ(go(false).how, ran::captured);
      EXPECT_EQ(go(false).how, ran::replayed);
    } else {
      EXPECT_TRUE(
          has(message_of<usage_error>([&] { go(true); }), "name one with signature::random"));
      EXPECT_TRUE(has(message_of<usage_error>([&] { go(false); }), "ask given() first"));
    }
  }
}

TEST_P(remedies, what_is_overwritten_is_cloned_before_the_next_run) {
  weighted of{desk, 2};
  replay_cache cache{dev()};
  const step_result first = run(cache, of);
  const lease<float> held = first[of.y];
  const buffer<float> cloned = held.clone(s(), desk.memory);
  values = {7, 8, 9};
  run(cache, of);
  EXPECT_TRUE(has(message_of<stale_error>([&] { (void)held.get(); }),
                  "read or clone it before the next run"));
  EXPECT_EQ(desk.values_of(cloned), (floats{2, 4, 6}));
}

}  // namespace
}  // namespace reprise::test
