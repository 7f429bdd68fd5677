// Steps that are recorded ahead of time, and steps that are not captured at all, in debug mode.
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class preparation : public replay_case {
 protected:
  replay_cache cache{dev()};
  floats values{1, 2, 3};
};

REPRISE_ON_EACH_DEVICE(preparation);

TEST_P(preparation, runs_nothing_and_the_first_run_replays) {
  tally of{desk, 3};
  const buffer<float> overwritten = desk.filled({4, 4, 4});
  of.declared.overwrites("last", as_tensor(overwritten.all()));
  of.between = [&](step_scope& run) { copy(run, read(of.total), write(overwritten)); };
  EXPECT_EQ(cache.prepare(s(), of.what(), {{3}}), nullptr);
  EXPECT_EQ(desk.values_of(of.total), floats(3, 0.0F));
  EXPECT_EQ(desk.values_of(overwritten), floats(3, 4.0F));
  EXPECT_EQ(cache.prepare(s(), of.what(), {{3}}), nullptr) << "it is there";
  EXPECT_EQ(cache.counts().prepared, 1U);
  for (int i = 1; i <= 3; ++i) {
    const step_result done = cache.run(s(), of.what(), {of.x.from_host(values)});
    EXPECT_EQ(done.how, ran::replayed);
    EXPECT_EQ(desk.values_of(done[of.sum].get()), times(static_cast<float>(i), values));
    EXPECT_EQ(desk.values_of(overwritten), times(static_cast<float>(i), values));
  }
  const buffer<float> on_device = desk.filled(values);
  const step_result done = cache.run(s(), of.what(), {of.x(on_device.all())});
  EXPECT_EQ(done.how, ran::replayed);
  EXPECT_EQ(desk.values_of(done[of.sum].get()), times(4, values));
}

TEST_P(preparation, charges_all_that_its_replays_will_hold) {
  weighted of{desk, 2};
  EXPECT_EQ(cache.prepare(s(), of.what(), {{3, 1}}), nullptr);
  const std::size_t held = cache.budget().held();
  const std::size_t pinned = dev().pinned_bytes();
  cache.run(s(), of.what(), {of.x.from_host(values)});
  EXPECT_EQ(cache.report().recordings.front().bytes.total(), held);
  EXPECT_EQ(dev().pinned_bytes(), pinned) << "the first replay allocates nothing";
}

TEST_P(preparation, of_direct_inputs_reads_them_where_each_call_has_them) {
  signature declared{"direct"};
  const auto x = declared.in<float>("x", {any}, input_mode::direct);
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    launch(run, scale_followed, read(run[x]), write(run.make(y, run.shape(x))),
                           2.0F);
                  }};
  EXPECT_EQ(cache.prepare(s(), what, {{3}}), nullptr);
  for (const float a : {1.0F, 5.0F}) {
    const buffer<float> in = desk.filled(times(a, values));
    const step_result done = cache.run(s(), what, {x(in.all())});
    EXPECT_EQ(done.how, ran::replayed);
    EXPECT_EQ(desk.values_of(done[y].get()), times(2 * a, values));
  }
}

TEST_P(preparation, needs_one_closed_shape_for_each_input) {
  weighted of{desk, 2};
  EXPECT_TRUE(has(message_of<usage_error>([&] { cache.prepare(s(), of.what(), {}); }),
                  "has 1 inputs and 0 shapes were given"));
  EXPECT_TRUE(has(message_of<usage_error>([&] {
                    cache.prepare(s(), of.what(), {{any, 1}});
                  }),
                  "the shape [any, 1] of input 'x' leaves an extent open"));
  EXPECT_TRUE(has(message_of<usage_error>([&] {
                    cache.prepare(s(), of.what(), {{3, 2}});
                  }),
                  "expected f32 [any, 1]"));
  EXPECT_EQ(cache.recordings(), 0U);
}

TEST_P(preparation, inside_of_a_body_or_a_capture_is_refused) {
  weighted of{desk, 2};
  weighted outer{desk, 3};
  outer.more = [&](step_scope& run) { cache.prepare(run, of.what(), {{3, 1}}); };
  const step_result done = cache.run(s(), outer.what(), {outer.x.from_host(values)});
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_TRUE(has(done.why->text(), "inside of a body that is being recorded"));
  const auto captured = [&] {
    capture(s(), [&](stream_ref c) { cache.prepare(c, of.what(), {{4, 1}}); });
  };
  EXPECT_TRUE(has(message_of<usage_error>(captured), "the stream is being captured"));
}

TEST_P(preparation, that_the_budget_refuses_says_so_and_so_does_each_run) {
  weighted of{desk, 2};
  byte_budget budget{1000};
  replay_cache small{dev(), {.budget = &budget}};
  const auto why = small.prepare(s(), of.what(), {{3, 1}});
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->rule, "budget");
  const step_result done = small.run(s(), of.what(), {of.x.from_host(values)});
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_EQ(done.why, why);
  EXPECT_EQ(small.counts().refused, 2U) << "once each";
  EXPECT_EQ((*desk.calls)[seam_call::capture], 0U);
}

TEST_P(preparation, of_a_stale_recording_makes_another) {
  weighted of{desk, 2};
  EXPECT_EQ(cache.prepare(s(), of.what(), {{3, 1}}), nullptr);
  of.weight.version.bump();
  EXPECT_EQ(cache.prepare(s(), of.what(), {{3, 1}}), nullptr);
  EXPECT_EQ(cache.recordings(), 1U);
  EXPECT_EQ(cache.run(s(), of.what(), {of.x.from_host(values)}).how, ran::replayed);
}

class debug_mode : public replay_case {
 protected:
  replay_cache cache{dev(), {.debug = true}};
  floats values{1, 2, 3};
};

REPRISE_ON_EACH_DEVICE(debug_mode);

TEST_P(debug_mode, goes_through_it_all_and_captures_nothing) {
  tally of{desk, 3};
  of.between = [](step_scope& run) { run.eagerly("a pause", [](stream_ref) {}); };
  for (int i = 1; i <= 4; ++i) {
    const buffer<float> to = desk.filled(floats(3, 0.0F));
    const step_result done =
        cache.run(s(), of.what(), {of.x.from_host(values), of.sum.into(to.all())});
    EXPECT_EQ(done.how, i == 1 ? ran::captured : ran::replayed);
    EXPECT_EQ(desk.values_of(done[of.sum].get()), times(static_cast<float>(i), values));
    EXPECT_EQ(desk.values_of(to), times(static_cast<float>(i), values));
  }
  EXPECT_EQ((*desk.calls)[seam_call::capture], 0U);
  EXPECT_EQ((*desk.calls)[seam_call::launch], 0U);
  EXPECT_EQ(cache.recordings(), 1U);
  EXPECT_EQ(cache.report().recordings.front().segments, 0U);
}

TEST_P(debug_mode, keeps_the_contract_and_the_leases) {
  weighted of{desk, 2};
  const auto run = [&] { return cache.run(s(), of.what(), {of.x.from_host(values)}); };
  run();
  const lease<float> held = run()[of.y];
  EXPECT_EQ(run().how, ran::replayed);
  EXPECT_FALSE(held.valid());
  of.weight.version.bump();
  EXPECT_EQ(run().how, ran::eager);
  EXPECT_EQ(run().how, ran::captured);
}

TEST_P(debug_mode, leaves_what_a_body_throws_half_way_to_the_caller_and_runs_it_once) {
  tally of{desk, 3};
  int runs = 0;
  of.between = [&](step_scope&) {
    if (++runs == 2) throw std::range_error{"half way"};  // the first is the warm-up's
  };
  EXPECT_EQ(
      message_of<std::range_error>([&] { cache.run(s(), of.what(), {of.x.from_host(values)}); }),
      "half way");
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(desk.values_of(of.total), values) << "as far as an eager run would have come";
}

}  // namespace
}  // namespace reprise::test
