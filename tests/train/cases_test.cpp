// The field's cases that belong to the parts of a training step: G4, G7, G10 and G13.
#include "reprise/nn/linear.hpp"
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class part_cases : public training_case {
 protected:
  void both(graphed_model& of, plain_model& expected, const micro_batch& batch) {
    expect_same(of.run(batch), expected.run(batch));
    expect_same_weights(of.own, expected.own);
  }
};

REPRISE_ON_EACH_DEVICE(part_cases);

TEST_P(part_cases, G4_parameters_and_gradients_stay_where_they_are_and_the_optimizer_moves_them) {
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  std::vector<const std::byte*> before;
  const auto places = [&] {
    std::vector<const std::byte*> all;
    for (std::size_t i = 0; i < model.own.set.size(); ++i) {
      all.push_back(model.own.set[i].value.data);
      all.push_back(model.own.set[i].grad.data);
    }
    return all;
  };
  before = places();
  run.start(s());
  for (unsigned i = 0; i < 5; ++i) {  // eager and recorded, and behind the first replay
    both(model, plain, {.seed = i});
    EXPECT_EQ(places(), before);
    model.own.descend();
    plain.own.descend();
    expect_same_weights(model.own, plain.own);
    model.own.set.drop_gradients();
    plain.own.set.drop_gradients();
  }
  EXPECT_EQ(model.trunk.counts().calls.backward_replay, 4U);
}

TEST_P(part_cases, G7_every_mark_reaches_an_observer_exactly_once_a_call) {
  const std::vector<std::string> of_trunk{"linear 0", "layer_norm 1", "gelu 2", "dropout 3",
                                          "linear 4"};
  const std::vector<std::string> of_heads{"linear 0", "linear 0", "gelu 1"};
  std::vector<std::string> of_both = of_trunk;
  of_both.insert(of_both.end(), of_heads.begin(), of_heads.end());
  for (const bool is_on : {false, true}) {
    plain_model plain{desk};
    graphed_model model{desk, {.on = is_on}};
    training_run run{model.parts()};
    run.start(s());
    for (unsigned i = 0; i < 2; ++i) both(model, plain, {.seed = i});
    const auto own = std::make_shared<noted_marks>();
    const auto all = std::make_shared<noted_marks>();
    model.trunk.observe(own);
    for (unsigned i = 2; i < 12; ++i) {
      both(model, plain, {.seed = i});
      EXPECT_EQ(own->seen, of_trunk) << "in call " << i;
      own->seen.clear();
    }
    // One that is there for the part and for all ops is told once.
    graphed::observe_all(own);
    graphed::observe_all(all);
    both(model, plain, {.seed = 12});
    EXPECT_EQ(own->seen, of_both);
    EXPECT_EQ(all->seen, of_both);
    graphed::stop_observing_all();
    model.trunk.stop_observing();
    own->seen.clear();
    all->seen.clear();
    both(model, plain, {.seed = 13});
    EXPECT_TRUE(own->seen.empty());
    EXPECT_TRUE(all->seen.empty());
    (void)model.infer({.seed = 1});
    EXPECT_EQ(own.use_count(), 1) << "nobody keeps it";
    EXPECT_EQ(all.use_count(), 1);
    run.end();
  }
}

TEST_P(part_cases, G7_an_inference_that_is_observed_tells_what_it_passes) {
  graphed_model model{desk};
  const auto marks = std::make_shared<noted_marks>();
  model.trunk.observe(marks);
  (void)model.infer({.seed = 1});
  EXPECT_EQ(marks->seen,
            (std::vector<std::string>{"linear 0", "layer_norm 1", "gelu 2", "linear 3"}));
}

TEST_P(part_cases, G10_a_part_has_its_own_precision_wherever_it_is_called) {
  const precision bf16{matrix_precision::full, cast_mode::bf16};
  const precision tf32{matrix_precision::tf32, cast_mode::none};
  for (const precision& in : {precision{}, bf16, tf32}) {
    plain_model plain{desk, in};
    graphed_model model{desk, {.on = true, .in = in}};
    training_run run{model.parts()};
    run.start(s());
    unsigned seed = 0;
    for (const precision& around : {precision{}, bf16, tf32}) {
      auto now = model.begin({.seed = seed});
      {
        const precision_scope outer{around};
        model.forward(now);
        model.compute_loss(now);
      }
      // Nor does it matter what is in force at the backward.
      const precision_scope outer{tf32};
      expect_same(model.backward(now), plain.run({.seed = seed++}));
      expect_same_weights(model.own, plain.own);
      EXPECT_EQ(precision_now(), tf32);
    }
    EXPECT_EQ(told(model.trunk.counts()),
              "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 2, "
              "replays_inside_windows 2");
    EXPECT_EQ(told(model.loss.counts()), "captured 1, replayed 2");
  }
}

TEST_P(part_cases, G10_the_casts_of_a_part_are_made_anew_in_each_replay) {
  const precision bf16{matrix_precision::full, cast_mode::bf16};
  plain_model plain{desk, bf16};
  graphed_model model{desk, {.on = true, .in = bf16}};
  training_run run{model.parts()};
  run.start(s());
  for (unsigned i = 0; i < 4; ++i) {
    both(model, plain, {.seed = i});
    model.own.descend();
    plain.own.descend();
  }
  EXPECT_EQ(model.trunk.counts().calls.forward_replay, 3U);
}

TEST_P(part_cases, G13_a_part_that_never_engaged_says_why_when_the_run_ends) {
  graphed_model model{desk};
  graphed_network empty{nn::sequence{"nothing"}, desk.budget, {.on = true}};
  std::vector<run_part> parts = model.parts();
  parts.push_back(&empty);
  training_run run{parts};
  const auto never = [&](const std::string& part, const std::string& why) {
    return lines_with(part + " was on and never engaged: " + why);
  };
  run.start(s());
  run.end();
  EXPECT_EQ(never("graphed network 'trunk'", "no call came"), 1);
  EXPECT_EQ(never("graphed heads 'class, mask'", "no call came"), 1);
  EXPECT_EQ(never("graphed loss 'class, mask'", "no call came"), 1);
  EXPECT_EQ(never("graphed network 'nothing'", "it has no layer; add one"), 1);

  // Three steps, each of another shape.
  log.clear();
  run.start(s());
  for (unsigned i = 0; i < 3; ++i) (void)model.run({.seed = i, .rows = 3 + i});
  run.end();
  EXPECT_EQ(never("graphed network 'trunk'",
                  "3 forwards: 1 captured, 0 shared, 0 replayed, 2 eager (key 2); 3 backwards: 1 "
                  "captured, 0 replayed, 2 eager (key 2)"),
            1);
  EXPECT_EQ(never("graphed loss 'class, mask'", "3 calls: 1 captured, 0 replayed, 2 eager"), 1);

  // As it should be.
  log.clear();
  run.start(s());
  for (unsigned i = 0; i < 3; ++i) (void)model.run({.seed = i});
  EXPECT_GE(model.trunk.counts().replays(), 2U);
  run.end();
  EXPECT_EQ(lines_with("never engaged"), 1) << "but for the one without a layer";
  // Parts that are off have nothing to say.
  log.clear();
  graphed_model off{desk, {}};
  training_run quiet{off.parts()};
  quiet.start(s());
  quiet.end();
  EXPECT_TRUE(log.empty());
}

TEST_P(part_cases, G13_what_is_recorded_in_the_next_run_is_the_same_work_on_the_weights_of_now) {
  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
  std::vector<std::uint64_t> works;
  for (unsigned again = 0; again < 2; ++again) {
    run.start(s());
    const calls_since before{*desk.calls};
    both(model, plain, {.seed = 10 * again});
    works.push_back(before[seam_call::kernel]);
    both(model, plain, {.seed = 10 * again + 1});
    run.end();
    model.own.descend();
    plain.own.descend();
  }
  EXPECT_EQ(works[0], works[1]) << "as many kernels were recorded";
  EXPECT_EQ(model.trunk.counts().calls.forward_capture, 2U);
  EXPECT_EQ(model.trunk.counts().calls.forward_replay, 2U);
}

}  // namespace
}  // namespace reprise::test
