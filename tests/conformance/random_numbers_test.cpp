// Rule 21: draws come from a counter that the host owns. A call reserves its draws and passes the
// base in a device word, which a replay reads; so one sequence goes on, however its steps run.
#include "reprise/ops/random_uniform.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/replay/philox_counter.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t draws_of_a_step = 100;

// y = uniform draws + 0 x, in two calls that share the step's reservation.
class drawing {
 public:
  explicit drawing(philox_counter& counter) { declared.random(counter); }

  signature declared{"drawing"};
  const input<float> x = declared.in<float>("x", {any});
  const output<float> y = declared.out<float>("y");
  step make() {
    return step{declared, [this](step_scope& run) {
                  const view<float> out = run.make(y, {draws_of_a_step});
                  const std::size_t half = out.size() / 2;
                  draw(run, out.subview(0, half));
                  draw(run, out.subview(half, half));
                }};
  }

 private:
  static void draw(step_scope& run, view<float> into) {
    const random_base from = run.draws(uniform_draws(into.size()));
    launch(run, random_uniform, read<std::uint64_t>{from.words}, write<float>{into}, from.offset);
  }
};

class sequence {
 public:
  sequence(device_ref device, stream_ref on)
      : on_{on}, recorded_{device}, plain_{device, {.record = false}} {}

  // All draws of one call of the step, run one way or the other.
  std::vector<float> recorded() { return run(recorded_); }
  std::vector<float> eager() { return run(plain_); }
  const step_counts& counts() const { return recorded_.counts(); }
  const philox_counter& counter() const { return counter_; }

 private:
  std::vector<float> run(replay_cache& cache) {
    const step_result done = cache.run(on_, what_, {step_.x.from_host(none_)});
    const view<const float> from = done[step_.y].get();
    std::vector<float> host(from.size());
    copy(on_, read<float>{from}, write<float>{view<float>{host.data(), host.size()}});
    on_.synchronize();
    return host;
  }

  stream_ref on_;
  philox_counter counter_{42};
  drawing step_{counter_};
  step what_ = step_.make();
  std::vector<float> none_{0};
  replay_cache recorded_;
  replay_cache plain_;
};

TEST_P(rule_21, recorded_steps_draw_what_a_fully_eager_run_draws) {
  sequence replayed{dev(), s()};
  sequence plain{dev(), s()};
  for (int i = 0; i < 20; ++i) ASSERT_EQ(replayed.recorded(), plain.eager()) << i;
  EXPECT_EQ(replayed.counts().replayed, 19U);
  EXPECT_EQ(replayed.counts().captured, 1U);
}

TEST_P(rule_21, eager_draws_before_between_and_after_continue_the_sequence) {
  sequence mixed{dev(), s()};
  sequence plain{dev(), s()};
  for (const bool eagerly : {true, true, false, false, true, false, true, false, false, true}) {
    ASSERT_EQ(eagerly ? mixed.eager() : mixed.recorded(), plain.eager());
  }
  EXPECT_GT(mixed.counts().replayed, 0U);
}

TEST_P(rule_21, no_draw_comes_twice) {
  sequence replayed{dev(), s()};
  std::vector<float> before;
  for (int i = 0; i < 10; ++i) {
    const std::vector<float> drawn = replayed.recorded();
    const auto half = drawn.begin() + draws_of_a_step / 2;
    EXPECT_NE(drawn, before);
    EXPECT_NE((std::vector<float>{drawn.begin(), half}), (std::vector<float>{half, drawn.end()}));
    before = drawn;
  }
}

TEST_P(rule_21, a_recording_that_draws_none_has_no_node_more_for_it) {
  philox_counter counter{42};
  const auto nodes = [&](bool random) {
    signature declared{"copying"};
    const input<float> x = declared.in<float>("x", {any});
    const output<float> y = declared.out<float>("y");
    if (random) declared.random(counter);
    const step what{declared, [&](step_scope& run) {
                      copy(run, read(run[x]), write<float>{run.make(y, run.shape(x))});
                    }};
    const std::vector<float> values{1, 2};
    replay_cache cache{dev()};
    cache.run(s(), what, {x.from_host(values)});
    const calls_since now{*counts};
    cache.run(s(), what, {x.from_host(values)});
    EXPECT_EQ(cache.counts().replayed, 1U);
    EXPECT_EQ(now[seam_call::launch], 1U);
    EXPECT_EQ(now[seam_call::kernel], 0U);
    s().synchronize();
    return now[seam_call::copy];
  };
  EXPECT_EQ(nodes(true), nodes(false));
}

}  // namespace
}  // namespace reprise::test
