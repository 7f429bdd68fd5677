// Steps whose inputs are outputs of the step before: nothing writes over them, and nothing gives
// their memory back, before they are read. And steps that share a signature share nothing else.
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

// a comes out as it went in, and so does b.
class two_inputs {
 public:
  signature declared{"two inputs"};
  const input<float> a = declared.in<float>("a", {any});
  const input<float> b = declared.in<float>("b", {any});
  const output<float> of_a = declared.out<float>("of a");
  const output<float> of_b = declared.out<float>("of b");
  const step what{declared, [this](step_scope& run) {
                    copy(run, read(run[a]), write(run.make(of_a, run.shape(a))));
                    copy(run, read(run[b]), write(run.make(of_b, run.shape(b))));
                  }};
};

class chained_steps : public replay_case {};

INSTANTIATE_TEST_SUITE_P(devices, chained_steps, testing::ValuesIn(devices_under_test()),
                         [](const auto& p) { return test_name(p.param); });

TEST_P(chained_steps, run_eagerly_beside_the_inputs_that_the_step_before_made) {
  scaling tripling{desk.memory, s(), 3.0F};
  two_inputs second;
  replay_cache cache{dev(), {.record = false}};
  const floats x(500, 2.0F);
  // Larger than the first step's memory: it would be copied over the output that comes after it.
  const floats large(4000, 7.0F);
  for (int i = 0; i < 3; ++i) {
    const step_result made = cache.run(s(), tripling.what, {tripling.x.from_host(x)});
    const step_result done =
        cache.run(s(), second.what, {second.a.from_host(large), second.b(made[tripling.y].get())});
    EXPECT_EQ(desk.values_of(done[second.of_a].get()), large);
    EXPECT_EQ(desk.values_of(done[second.of_b].get()), floats(500, 6.0F));
  }
  EXPECT_EQ(cache.counts().eager, 6U);
}

TEST_P(chained_steps, make_no_room_by_dropping_the_recording_whose_output_they_read) {
  scaling tripling{desk.memory, s(), 3.0F};
  two_inputs second;
  const floats x{1, 2, 3};
  std::size_t one = 0;
  {
    replay_cache measured{dev()};
    measured.run(s(), tripling.what, {tripling.x.from_host(x)});
    one = measured.budget().held();
  }
  byte_budget budget{one};
  replay_cache cache{dev(), {.budget = &budget}};
  const step_result made = cache.run(s(), tripling.what, {tripling.x.from_host(x)});
  ASSERT_EQ(made.how, ran::captured);
  const step_result done =
      cache.run(s(), second.what, {second.a.from_host(x), second.b(made[tripling.y].get())});
  ASSERT_EQ(done.how, ran::eager);
  EXPECT_EQ(done.why->rule, "budget");
  EXPECT_EQ(desk.values_of(done[second.of_b].get()), (floats{3, 6, 9}));
  EXPECT_EQ(cache.recordings(), 1U) << "what was read is still there";
  EXPECT_EQ(cache.run(s(), tripling.what, {tripling.x.from_host(x)}).how, ran::replayed);
}

TEST_P(chained_steps, are_retired_behind_the_run_that_still_reads_them) {
  scaling tripling{desk.memory, s(), 3.0F};
  replay_cache cache{dev()};
  const floats x{1, 2, 3};
  const step_result made = cache.run(s(), tripling.what, {tripling.x.from_host(x)});
  const view<const float> y = made[tripling.y].get();
  tripling.weight.version.bump();
  const step_result done = cache.run(s(), tripling.what, {tripling.x(y)});
  ASSERT_EQ(done.how, ran::eager);
  EXPECT_EQ(desk.values_of(done[tripling.y].get()), (floats{9, 18, 27}));
  EXPECT_EQ(cache.recordings(), 0U);
}

TEST_P(chained_steps, of_one_signature_have_recordings_of_their_own) {
  signature declared{"shared"};
  const auto y = declared.out<float>("y");
  const auto filling = [&](float value) {
    return step{declared,
                [&y, value](step_scope& run) { fill(run, write<float>{run.make(y, {3})}, value); }};
  };
  const step ones = filling(1);
  const step twos = filling(2);
  replay_cache cache{dev()};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(desk.values_of(cache.run(s(), ones, {})[y].get()), floats(3, 1.0F));
    EXPECT_EQ(desk.values_of(cache.run(s(), twos, {})[y].get()), floats(3, 2.0F));
  }
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 4U);
}

TEST_P(chained_steps, wait_for_no_stream_that_is_being_captured_and_say_so) {
  scaling tripling{desk.memory, s(), 3.0F};
  replay_cache cache{dev()};
  const floats x{1, 2, 3};
  const stream other{dev()};
  cache.run(s(), tripling.what, {tripling.x.from_host(x)});
  {
    const open_capture somebody_elses{s()};
    EXPECT_THROW(cache.run(other, tripling.what, {tripling.x.from_host(x)}), usage_error);
    cache.drop_stale();
  }
  const step_result done = cache.run(other, tripling.what, {tripling.x.from_host(x)});
  EXPECT_EQ(done.how, ran::replayed);
  EXPECT_EQ(read_back(other, done[tripling.y].get()), (floats{3, 6, 9}));
}

TEST_P(chained_steps, ask_for_no_memory_of_an_open_or_endless_shape) {
  signature declared{"endless"};
  const auto y = declared.out<float>("y");
  for (const dims& shape : {dims{any}, dims{1 << 30, 1 << 21}}) {
    const step what{declared, [&](step_scope& run) { run.make(y, shape); }};
    replay_cache cache{dev()};
    EXPECT_THROW(cache.run(s(), what, {}), usage_error);
  }
}

}  // namespace
}  // namespace reprise::test
