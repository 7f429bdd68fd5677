// The field's cases about breaks: what crosses one, what one leaves behind, and what runs in one.
#include "reprise/ops/random_uniform.hpp"
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

bool apart(view<float> a, view<float> b) {
  return a.data() + a.size() <= b.data() || b.data() + b.size() <= a.data();
}

class break_cases : public replay_case {
 protected:
  floats result(const step_result& done, const interrupted& of) {
    return desk.values_of(done[of.y].get());
  }

  replay_cache cache{dev()};
  floats in{1, 2};
};

REPRISE_ON_EACH_DEVICE(break_cases);

TEST_P(break_cases, R9_what_crosses_a_break_is_the_recordings_own) {
  interrupted a{desk};
  interrupted b{desk};
  const step first = a.make();
  const step second = b.make();
  for (int i = 1; i <= 4; ++i) {
    for (interrupted* const of : {&a, &b, &a}) {
      const ran how = of->breaks == 0 ? ran::captured : ran::replayed;
      const floats now = times(static_cast<float>(i), in);
      const step_result done = cache.run(s(), of == &a ? first : second, {of->x.from_host(now)});
      EXPECT_EQ(done.how, how);
      EXPECT_EQ(result(done, *of), times(6, now));
    }
  }
  EXPECT_EQ(a.breaks, 8);
  EXPECT_EQ(b.breaks, 4);
  EXPECT_TRUE(apart(a.crossing, b.crossing));
  EXPECT_TRUE(apart(a.crossing, b.written));
  EXPECT_TRUE(apart(a.crossing, a.written));
  EXPECT_EQ(desk.values_of(a.total), times(2 * 6 * 10, in));
  EXPECT_EQ(desk.values_of(b.total), times(6 * 10, in));
  for (const recording_row& row : cache.report().recordings) {
    EXPECT_EQ(row.segments, 2U);
    ASSERT_EQ(row.breaks.size(), 1U);
    EXPECT_EQ(row.breaks[0].why, "doubling");
    EXPECT_EQ(row.breaks[0].runs, row.replays);
    EXPECT_EQ(row.bytes.total(),
              row.bytes.buffers + row.bytes.workspaces + row.bytes.pinned + row.bytes.executables);
    EXPECT_GE(row.bytes.buffers, 2 * 256U) << "the boundary, and the output";
  }
  EXPECT_EQ(cache.budget().held(), cache.bytes().recordings);
}

TEST_P(break_cases, R10_a_break_that_leaves_work_on_another_stream_is_refused_by_name) {
  const stream side{dev()};
  const buffer<float> sink = desk.filled({0, 0});
  order(s(), side);
  if (sim::controls* const sim = sim::controls_of(dev())) sim->lasts("test_add_to", 100);
  enum class leaves { unjoined, joined, waited_for } how = leaves::joined;
  interrupted of{desk, [&](stream_ref on, view<float> made) {
                   order(on, side);
                   launch(side, add_to, read<float>{view<const float>{made}}, inout(sink));
                   if (how == leaves::joined) order(side, on);
                   if (how == leaves::waited_for) side.synchronize();
                 }};
  const step what = of.make();
  const std::string name =
      "leaves work on stream " + std::to_string(static_cast<std::uint64_t>(stream_ref{side}.id()));
  replay_cache eager{dev(), {.record = false}};
  how = leaves::unjoined;
  for (replay_cache* const with : {&cache, &eager}) {
    const std::string message =
        message_of<usage_error>([&] { with->run(s(), what, {of.x.from_host(in)}); });
    EXPECT_TRUE(has(message, "the break 'doubling'")) << message;
    EXPECT_TRUE(has(message, name)) << message;
    EXPECT_TRUE(has(message, "join it with an event, or wait for it")) << message;
  }
  EXPECT_EQ(cache.recordings(), 0U);
  EXPECT_EQ(desk.values_of(of.total), (floats{0, 0})) << "the next segment did not begin";
  // Both remedies, executed.
  for (const leaves remedy : {leaves::joined, leaves::waited_for}) {
    how = remedy;
    for (replay_cache* const with : {&cache, &eager}) {
      const step_result done = with->run(s(), what, {of.x.from_host(in)});
      EXPECT_EQ(result(done, of), times(3, in));
    }
  }
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 1U);
  // A replay is held to the same.
  how = leaves::unjoined;
  EXPECT_THROW(cache.run(s(), what, {of.x.from_host(in)}), usage_error);
  how = leaves::joined;
  EXPECT_EQ(cache.run(s(), what, {of.x.from_host(in)}).how, ran::replayed);
  order(s(), side);
}

TEST_P(break_cases, what_a_break_throws_is_the_callers_and_a_first_run_leaves_no_trace) {
  bool throws = true;
  interrupted of{desk, [&](stream_ref on, view<float> made) {
                   interrupted::doubles()(on, made);
                   if (throws) throw std::range_error{"no second half"};
                 }};
  const step what = of.make();
  const auto run = [&] { return cache.run(s(), what, {of.x.from_host(in)}); };
  EXPECT_EQ(message_of<std::range_error>(run), "no second half");
  EXPECT_EQ(of.breaks, 1) << "a break is not taken twice";
  EXPECT_EQ(cache.recordings(), 0U);
  EXPECT_EQ(cache.budget().held(), 0U);
  EXPECT_EQ(desk.values_of(of.total), (floats{0, 0}));
  EXPECT_FALSE(s().capturing());
  throws = false;
  EXPECT_EQ(run().how, ran::captured);
  throws = true;
  EXPECT_EQ(message_of<std::range_error>(run), "no second half");
  throws = false;
  const step_result done = run();
  EXPECT_EQ(done.how, ran::replayed);
  EXPECT_EQ(result(done, of), times(6, in));
  EXPECT_EQ(desk.values_of(of.total), times(12, in));
}

TEST_P(break_cases, a_state_that_the_first_segment_wrote_is_put_back_when_a_later_one_fails) {
  bool fails = true;
  tally of{desk, 2};
  of.between = [&](step_scope& run) {
    run.eagerly("nothing", [](stream_ref) {});
    if (fails && stream_ref{run}.capturing()) throw std::runtime_error{"only in a capture"};
  };
  const step_result done = cache.run(s(), of.what(), {of.x.from_host(in)});
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_TRUE(has(done.why->text(), "only in a capture")) << done.why->text();
  EXPECT_EQ(desk.values_of(of.total), in) << "added once, by the eager run";
  EXPECT_EQ(desk.values_of(done[of.sum].get()), in);
  fails = false;
  EXPECT_EQ(cache.run(s(), of.what(), {of.x.from_host(in)}).how, ran::captured);
  EXPECT_EQ(desk.values_of(of.total), times(2, in));
}

TEST_P(break_cases, a_step_that_was_recorded_has_memory_to_fall_back_to) {
  constexpr std::size_t large = std::size_t{1} << 20;
  signature declared{"large"};
  const step what{declared, [&](step_scope& run) {
                    run.eagerly("a pause", [](stream_ref) {});
                    const auto count = static_cast<std::int64_t>(large / sizeof(float));
                    fill(run, write<float>{run.scratch<float>({count})}, 1.0F);
                  }};
  EXPECT_EQ(cache.run(s(), what, {}).how, ran::captured);
  EXPECT_GE(cache.bytes().eager, large);
}

TEST_P(break_cases, replays_on_two_streams_keep_their_order) {
  interrupted of{desk};
  const step what = of.make();
  const stream other{dev()};
  for (int i = 1; i <= 6; ++i) {
    const stream_ref on = i % 2 == 0 ? stream_ref{other} : s();
    const floats now = times(static_cast<float>(i), in);
    const step_result done = cache.run(on, what, {of.x.from_host(now)});
    EXPECT_EQ(done.how, i == 1 ? ran::captured : ran::replayed);
    EXPECT_EQ(read_back<float>(on, done[of.y].get()), times(6, now));
  }
  order(other, s());
  EXPECT_EQ(desk.values_of(of.total), times(6 * 21, in));
}

TEST_P(break_cases, a_step_that_draws_on_both_sides_goes_on_with_one_sequence) {
  const auto sequence = [&](bool record) {
    philox_counter counter{5};
    signature declared{"drawing"};
    declared.random(counter);
    const auto y = declared.out<float>("y");
    const step what{declared, [&](step_scope& run) {
                      const view<float> made = run.make(y, {8});
                      const auto draw = [&](view<float> into) {
                        const random_base from = run.draws(uniform_draws(into.size()));
                        launch(run, random_uniform, read(from.words), write<float>{into},
                               from.offset);
                      };
                      draw(made.subview(0, 4));
                      run.eagerly("a pause", [](stream_ref) {});
                      draw(made.subview(4, 4));
                    }};
    replay_cache own{dev(), {.record = record}};
    std::vector<floats> all;
    for (int i = 0; i < 5; ++i) all.push_back(desk.values_of(own.run(s(), what, {})[y].get()));
    EXPECT_EQ(own.counts().replayed, record ? 4U : 0U);
    EXPECT_EQ(counter.next(), 5 * 2 * uniform_draws(4));
    return all;
  };
  const auto replayed = sequence(true);
  EXPECT_EQ(replayed, sequence(false));
  EXPECT_NE(replayed[0], replayed[1]);
}

}  // namespace
}  // namespace reprise::test
