// The field's cases about outputs: who may still read one, and what the next run does about it.
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class output_cases : public replay_case {
 protected:
  step_result run(weighted& of, const floats& in) {
    return cache.run(s(), of.what(), {of.x.from_host(in)});
  }

  replay_cache cache{dev()};
  floats ones{1, 1};
  floats twos{2, 2};
};

REPRISE_ON_EACH_DEVICE(output_cases);

TEST_P(output_cases, R8_revoke_reading_an_overwritten_output_is_an_error_that_names_the_run) {
  weighted of{desk, 3};
  run(of, ones);
  const lease<float> held = run(of, ones)[of.y];
  const step_result second = run(of, twos);
  EXPECT_EQ(second.how, ran::replayed);
  EXPECT_FALSE(held.valid());
  const std::string number = std::to_string(static_cast<std::uint64_t>(second.replay));
  EXPECT_TRUE(has(message_of<stale_error>([&] { (void)held.get(); }),
                  "overwritten by run " + number + " of step 'weighted'"));
}

TEST_P(output_cases, R8_refuse_runs_eagerly_while_the_lease_is_held_and_names_the_holder) {
  weighted of{desk, 3, input_mode::staged, on_overwrite::refuse};
  run(of, ones);
  {
    const lease<float> held = run(of, ones).held(of.y, "the sampler");
    for (int i = 0; i < 2; ++i) {
      const step_result second = run(of, twos);
      EXPECT_EQ(second.how, ran::eager);
      EXPECT_EQ(second.why->rule, "output held");
      ASSERT_EQ(second.why->breaches.size(), 1U);
      EXPECT_EQ(second.why->breaches[0].fact, "y");
      EXPECT_TRUE(has(second.why->breaches[0].actual, "'the sampler'"));
      EXPECT_EQ(desk.values_of(second[of.y].get()), times(3, twos));
    }
    EXPECT_EQ(desk.values_of(held.get()), times(3, ones)) << "as it was";
  }
  const step_result after = run(of, twos);
  EXPECT_EQ(after.how, ran::replayed);
  EXPECT_EQ(desk.values_of(after[of.y].get()), times(3, twos));
  EXPECT_EQ(cache.counts().eager_reasons.at("output held"), 2U);
  EXPECT_EQ(log.size(), 1U);
}

TEST_P(output_cases, R8_move_aside_keeps_the_bytes_and_copies_only_what_is_held) {
  weighted of{desk, 3, input_mode::staged, on_overwrite::move_aside};
  run(of, ones);
  {
    const lease<float> held = run(of, ones)[of.y];
    const calls_since since{*desk.calls};
    EXPECT_EQ(run(of, twos).how, ran::replayed);
    EXPECT_EQ(since[seam_call::copy], 1U);
    EXPECT_TRUE(held.valid());
    EXPECT_EQ(desk.values_of(held.get()), times(3, ones));
    EXPECT_EQ(run(of, twos).how, ran::replayed);
    EXPECT_EQ(desk.values_of(held.get()), times(3, ones)) << "moved once";
  }
  const calls_since since{*desk.calls};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(of, twos).how, ran::replayed);
  EXPECT_EQ(since[seam_call::copy], 0U) << "after the release nothing is copied";
}

TEST_P(output_cases, R8_copies_of_a_lease_hold_together) {
  weighted of{desk, 3, input_mode::staged, on_overwrite::refuse};
  run(of, ones);
  std::optional<lease<float>> first{run(of, ones)[of.y]};
  std::optional<lease<float>> second{first};
  first.reset();
  EXPECT_EQ(run(of, twos).how, ran::eager);
  second.reset();
  EXPECT_EQ(run(of, twos).how, ran::replayed);
}

TEST_P(output_cases, an_eager_run_moves_what_it_may_not_overwrite) {
  for (const on_overwrite policy : {on_overwrite::refuse, on_overwrite::move_aside}) {
    weighted of{desk, 3, input_mode::staged, policy};
    replay_cache eager{dev(), {.record = false}};
    const lease<float> held =
        eager.run(s(), of.what(), {of.x.from_host(ones)}).held(of.y, "the first");
    EXPECT_EQ(eager.run(s(), of.what(), {of.x.from_host(twos)}).how, ran::eager);
    EXPECT_EQ(desk.values_of(held.get()), times(3, ones));
  }
}

TEST_P(output_cases, what_is_held_and_may_not_be_overwritten_outlives_its_recording) {
  for (const on_overwrite policy : {on_overwrite::refuse, on_overwrite::move_aside}) {
    weighted of{desk, 3, input_mode::staged, policy};
    run(of, ones);
    const lease<float> held = run(of, ones).held(of.y, "the sampler");
    cache.sleep();
    EXPECT_EQ(cache.recordings(), 0U);
    ASSERT_TRUE(held.valid());
    EXPECT_EQ(desk.values_of(held.get()), times(3, ones));
  }
}

TEST_P(output_cases, a_stream_that_a_lease_is_used_on_is_behind_the_run_and_ahead_of_the_next) {
  for (const on_overwrite policy :
       {on_overwrite::revoke, on_overwrite::refuse, on_overwrite::move_aside}) {
    weighted of{desk, 3, input_mode::staged, policy};
    const stream other{dev()};
    const buffer<float> kept = desk.filled({0, 0});
    order(s(), other);
    for (int i = 1; i <= 5; ++i) {
      const floats in(2, static_cast<float>(i));
      const step_result done = run(of, in);
      EXPECT_EQ(done.how, i == 1 ? ran::captured : ran::replayed);
      const lease<float> held = done[of.y];
      copy(other, read<float>{held.on(other)}, write(kept));
      EXPECT_EQ(read_back<float>(other, kept.all()), times(3, in));
      copy(other, read<float>{held.on(other)}, write(kept));
    }
    order(other, s());
  }
}

TEST_P(output_cases, a_capture_between_a_run_and_its_reader_is_refused_until_it_ends) {
  weighted of{desk, 3};
  const stream other{dev()};
  run(of, ones);
  const lease<float> held = run(of, ones)[of.y];
  {
    open_capture of_the_run{s()};
    EXPECT_TRUE(has(message_of<usage_error>([&] { (void)held.on(other); }),
                    "the stream of its run is being captured"));
    (void)of_the_run.end();
  }
  (void)held.on(other);
  {
    open_capture of_the_reader{other};
    EXPECT_TRUE(has(message_of<usage_error>([&] { run(of, twos); }),
                    "end that capture before the next run, or clone the output"));
    (void)of_the_reader.end();
  }
  EXPECT_TRUE(held.valid()) << "nothing was overwritten";
  EXPECT_EQ(desk.values_of(held.get()), times(3, ones));
  const step_result done = run(of, twos);
  EXPECT_EQ(done.how, ran::replayed);
  EXPECT_EQ(desk.values_of(done[of.y].get()), times(3, twos));
}

// What reads a lease on another stream comes before the memory is given to others.
TEST(a_reader_of_a_lease, is_waited_for_when_the_memory_goes) {
  for (const int how : {0, 1, 2, 3}) {
    const exploration seen = explore(
        40,
        [how](device_ref dev) {
          const stream s{dev};
          const stream other{dev};
          pool memory{dev, "kept"};
          signature declared{"filling"};
          const auto y = declared.out<float>("y");
          const step what{
              declared, [&](step_scope& run) { fill(run, write<float>{run.make(y, {64})}, 3.0F); }};
          const buffer<float> kept{memory, 64, other};
          {
            replay_cache cache{dev, {.record = how != 3}};
            const step_result done = cache.run(s, what, {});
            copy(other, read<float>{done[y].on(other)}, write(kept));
            if (how == 0) cache.sleep();
            if (how == 1) cache.run(s, what, {});
          }
          // Others take the memory at once.
          pool others{dev, "others"};
          for (int i = 0; i < 4; ++i) {
            const buffer<float> taken{others, 64, s};
            fill(s, write<float>{taken}, 9.0F);
          }
          if (read_back<float>(other, kept.all()) != floats(64, 3.0F)) {
            throw std::runtime_error{"somebody else's bytes"};
          }
        },
        {.kernels = replay_kernels()});
    EXPECT_TRUE(seen.failures.empty()) << how << ": " << seen;
  }
}

TEST(a_reader_of_a_lease, that_does_not_say_so_is_a_race) {
  const exploration seen = explore(
      40,
      [](device_ref dev) {
        const stream s{dev};
        const stream other{dev};
        pool memory{dev, "kept"};
        signature declared{"filling"};
        const auto y = declared.out<float>("y");
        const step what{declared,
                        [&](step_scope& run) { fill(run, write<float>{run.make(y, {64})}, 3.0F); }};
        const buffer<float> kept{memory, 64, other};
        replay_cache cache{dev};
        copy(other, read<float>{cache.run(s, what, {})[y].get()}, write(kept));
        other.synchronize();
      },
      {.kernels = replay_kernels()});
  ASSERT_FALSE(seen.failures.empty());
  EXPECT_EQ(seen.failures.front().kind, "race");
}

// Two streams read an output that was moved aside; its memory is given back behind both.
TEST(an_output_moved_aside, is_given_back_behind_all_that_read_it) {
  const exploration seen = explore(
      60,
      [](device_ref dev) {
        const stream s{dev};
        const stream a{dev};
        const stream b{dev};
        pool memory{dev, "kept"};
        signature declared{"filling"};
        const auto y = declared.out<float>("y", on_overwrite::move_aside);
        const step what{declared,
                        [&](step_scope& run) { fill(run, write<float>{run.make(y, {64})}, 3.0F); }};
        const buffer<float> on_a{memory, 64, a};
        const buffer<float> on_b{memory, 64, b};
        replay_cache cache{dev};
        cache.run(s, what, {});
        for (int i = 0; i < 3; ++i) {
          const lease<float> held = cache.run(s, what, {})[y];
          cache.run(s, what, {});
          copy(a, read<float>{held.on(a)}, write(on_a));
          copy(b, read<float>{held.on(b)}, write(on_b));
        }
        for (const stream* const each : {&a, &b}) each->synchronize();
      },
      {.kernels = replay_kernels()});
  EXPECT_TRUE(seen.failures.empty()) << seen;
}

}  // namespace
}  // namespace reprise::test
