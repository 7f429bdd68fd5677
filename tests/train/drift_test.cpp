// Drift: what a recording rests on changes in the middle of a run. The part is retired once, says
// what drifted in one line, runs eagerly with the right bits, and records again in the next run.
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/ops/narrowing.hpp"
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class drift_of_parts : public training_case {
 protected:
  void both(const micro_batch& of) {
    expect_same(model.run(of), plain.run(of));
    expect_same_weights(model.own, plain.own);
  }
  // Gradients are gathered in other memory from here on.
  buffer<float> moved_gradient(const std::string& name) {
    parameter& p = model.own.set.at(name);
    buffer<float> other{desk.memory, p.grad.shape.count(), s()};
    copy(s(), read<float>{elements_of<const float>(p.grad)}, write<float>{other.all()});
    p.grad = as_tensor(other.all(), p.grad.shape);
    return other;
  }
  // The values lie in other memory from here on.
  buffer<float> moved_values(const std::string& name) {
    parameter& p = model.own.set.at(name);
    buffer<float> other{desk.memory, p.value.shape.count(), s()};
    copy(s(), read<float>{elements_of<const float>(p.value)}, write<float>{other.all()});
    p.value = as_tensor(other.all(), p.value.shape);
    return other;
  }

  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
};

REPRISE_ON_EACH_DEVICE(drift_of_parts);

TEST_P(drift_of_parts, retires_a_network_once_a_run_with_one_line) {
  run.start(s());
  for (unsigned i = 0; i < 2; ++i) both({.seed = i});
  const auto kept = moved_gradient("in.weight");
  both({.seed = 2});
  EXPECT_EQ(model.trunk.state(), part_state::retired);
  EXPECT_TRUE(
      has(model.trunk.reason(), "parameter 'weight' of layer 0 'linear' has its gradient at 0x"))
      << model.trunk.reason();
  EXPECT_EQ(lines_with("graphed network 'trunk' is retired for this run"), 1);
  EXPECT_EQ(lines_with("has its gradient at 0x"), 1);
  // A later cause is silent, and there is nothing left to clear.
  const auto also = moved_gradient("out.bias");
  for (unsigned i = 3; i < 5; ++i) both({.seed = i});
  EXPECT_EQ(lines_with("is retired"), 1);
  EXPECT_EQ(told(model.trunk.counts()),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, forward "
            "suspended 3, backward suspended 3, clears 1, retirements 1, replays_inside_windows 1");
  EXPECT_EQ(model.heads.state(), part_state::ready) << "the other parts record on";
  EXPECT_EQ(model.loss.counts().replayed, 4U);

  run.end();
  EXPECT_EQ(model.trunk.counts().clears, 1U) << "it was cleared already";
  run.start(s());
  EXPECT_EQ(model.trunk.state(), part_state::ready);
  EXPECT_EQ(model.trunk.reason(), "");
  for (unsigned i = 5; i < 8; ++i) both({.seed = i});
  EXPECT_EQ(model.trunk.counts().calls.forward_capture, 2U);
  EXPECT_EQ(model.trunk.counts().calls.forward_replay, 3U);
  const auto third = moved_gradient("norm.gain");
  both({.seed = 8});
  EXPECT_EQ(lines_with("is retired"), 2) << "once a run";
  EXPECT_EQ(model.trunk.counts().retirements, 2U);
}

TEST_P(drift_of_parts, retires_all_groups_of_heads) {
  run.start(s());
  for (unsigned i = 0; i < 2; ++i) both({.seed = i});
  const auto kept = moved_values("mask.weight");
  for (unsigned i = 2; i < 4; ++i) both({.seed = i});
  EXPECT_EQ(model.heads.state(), part_state::retired);
  EXPECT_TRUE(has(model.heads.reason(),
                  "of group 'mask': parameter 'weight' of layer 0 'linear' lies at 0x"))
      << model.heads.reason();
  EXPECT_EQ(lines_with("graphed heads 'class, mask' is retired"), 1);
  // The class group ran ahead of the other once more.
  EXPECT_EQ(model.heads.counts(0).calls.forward_replay, 2U);
  EXPECT_EQ(model.heads.counts(1).calls.forward_replay, 1U);
  EXPECT_EQ(model.heads.counts(0).retirements, 1U);
  EXPECT_EQ(model.heads.counts(0).clears, 1U);
  EXPECT_EQ(model.trunk.state(), part_state::ready);
}

TEST_P(drift_of_parts,
       between_a_forward_and_its_backward_gives_the_gradients_to_where_they_go_now) {
  run.start(s());
  for (unsigned i = 0; i < 2; ++i) both({.seed = i});
  auto now = model.begin({.seed = 2});
  model.forward(now);
  model.compute_loss(now);
  const auto kept = moved_gradient("in.weight");
  const auto also = moved_gradient("class.bias");
  const auto pending = plain.forward({.seed = 2});
  expect_same(model.backward(now), plain.backward(pending));
  expect_same_weights(model.own, plain.own);
  EXPECT_EQ(model.trunk.state(), part_state::retired);
  EXPECT_EQ(model.heads.state(), part_state::retired);
}

TEST_P(drift_of_parts, is_somebody_who_observes_a_part_that_has_recorded) {
  run.start(s());
  for (unsigned i = 0; i < 2; ++i) both({.seed = i});
  const auto marks = std::make_shared<noted_marks>();
  model.trunk.observe(marks);
  both({.seed = 2});
  EXPECT_EQ(model.trunk.state(), part_state::retired);
  EXPECT_EQ(model.trunk.reason(), "somebody observes its marks");
  EXPECT_EQ(model.heads.state(), part_state::ready);
  model.trunk.stop_observing();
  both({.seed = 3});
  EXPECT_EQ(model.trunk.state(), part_state::retired) << "until the next run";
  run.end();
  run.start(s());
  for (unsigned i = 4; i < 6; ++i) both({.seed = i});
  EXPECT_EQ(model.trunk.counts().calls.forward_capture, 2U);
}

TEST_P(drift_of_parts, is_somebody_who_observes_all_ops_of_the_process) {
  run.start(s());
  for (unsigned i = 0; i < 2; ++i) both({.seed = i});
  const auto marks = std::make_shared<noted_marks>();
  graphed::observe_all(marks);
  both({.seed = 2});
  graphed::stop_observing_all();
  EXPECT_EQ(model.trunk.state(), part_state::retired);
  EXPECT_EQ(model.heads.state(), part_state::retired);
  EXPECT_EQ(model.loss.state(), part_state::retired);
  EXPECT_EQ(lines_with("is retired"), 3);
  both({.seed = 3});
  EXPECT_EQ(model.loss.counts().retirements, 1U);
  EXPECT_EQ(model.loss.counts().clears, 1U);
}

TEST_P(drift_of_parts, is_no_observer_of_a_part_that_has_recorded_nothing_yet) {
  run.start(s());
  const auto marks = std::make_shared<noted_marks>();
  graphed::observe_all(marks);
  both({.seed = 0});
  graphed::stop_observing_all();
  EXPECT_EQ(model.trunk.state(), part_state::ready);
  for (unsigned i = 1; i < 3; ++i) both({.seed = i});
  EXPECT_EQ(told(model.trunk.counts()),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, forward "
            "observed 1, backward observed 1, replays_inside_windows 1");
  EXPECT_EQ(told(model.loss.counts()), "captured 1, replayed 1, eager 1");
  EXPECT_EQ(lines_with("op 'trunk' runs eagerly (observed)"), 1);
}

TEST_P(drift_of_parts, ends_the_recordings_of_a_run_once) {
  part_life life{"part", "one", {.on = true}};
  EXPECT_FALSE(life.retire("before a run")) << "it records nothing";
  for (int i = 0; i < 2; ++i) {
    log.clear();
    life.open("", {});
    EXPECT_TRUE(life.retire("the first cause"));
    EXPECT_FALSE(life.retire("a later cause"));
    EXPECT_EQ(life.reason(), "the first cause");
    EXPECT_EQ(log, std::vector<std::string>{"part 'one' is retired for this run, and runs eagerly: "
                                            "the first cause; put that back, and start the next "
                                            "run"});
    life.clear();
    EXPECT_FALSE(life.retire("behind a clear"));
  }
  EXPECT_EQ(life.retirements(), 2U);
}

class gates_of_parts : public training_case {};

REPRISE_ON_EACH_DEVICE(gates_of_parts);

TEST_P(gates_of_parts, refuse_and_say_why_once) {
  graphed_network empty{nn::sequence{"nothing"}, desk.budget, {.on = true}};
  graphed_loss none{{}, desk.budget, {.on = true}};
  weights own{desk};
  graphed_heads narrow{{{"trunk", own.trunk()}}, desk.budget, {.on = true}, {typeid(nn::gelu)}};
  training_run run{{&empty, &none, &narrow}};
  for (int i = 0; i < 2; ++i) {
    const calls_since before{*desk.calls};
    run.start(s());
    EXPECT_EQ(before.all(), 0U);
    for (const part_state state : {empty.state(), none.state(), narrow.state()}) {
      EXPECT_EQ(state, part_state::refused);
    }
    EXPECT_EQ(empty.reason(), "it has no layer; add one");
    EXPECT_EQ(none.reason(), "it has no term; give it one");
    EXPECT_TRUE(has(narrow.reason(), "of group 'trunk': layer 0 'linear' is of a kind"));
    run.failed();
  }
  EXPECT_EQ(lines_with("records nothing in this run"), 3);
  EXPECT_EQ(lines_with("graphed network 'nothing' records nothing in this run: it has no layer"),
            1);
}

TEST_P(gates_of_parts, refuse_while_somebody_observes) {
  graphed_model model{desk};
  plain_model plain{desk};
  training_run run{model.parts()};
  const auto marks = std::make_shared<noted_marks>();
  model.heads.observe(marks);
  run.start(s());
  EXPECT_EQ(model.trunk.state(), part_state::ready);
  EXPECT_EQ(model.heads.state(), part_state::refused);
  expect_same(model.run({.seed = 1}), plain.run({.seed = 1}));
  EXPECT_EQ(marks->seen, (std::vector<std::string>{"linear 0", "linear 0", "gelu 1"}));
  graphed::observe_all(marks);
  run.start(s());
  graphed::stop_observing_all();
  for (const part_state state : {model.trunk.state(), model.heads.state(), model.loss.state()}) {
    EXPECT_EQ(state, part_state::refused);
  }
}

// A module that needs no cast runs where there are no kernels for casts.
TEST_P(gates_of_parts, refuse_casts_that_the_device_cannot_make_and_the_loss_only_counts) {
  training_desk lacking{GetParam(),
                        [](const cell_row& one) { return one.id != narrow_to_bf16.id(); }};
  const part_options in_bf16{.on = true, .in = {matrix_precision::full, cast_mode::bf16}};
  nn::sequence module{"smooth"};
  module.add(nn::gelu{});
  graphed_network network{module, lacking.budget, in_bf16};
  graphed_heads heads{{{"smooth", module}}, lacking.budget, in_bf16};
  graphed_loss loss{{{"error", loss_of(nn::squared_error{})}}, lacking.budget, in_bf16};
  training_run run{{&network, &heads, &loss}};
  run.start(lacking.work);
  EXPECT_EQ(network.state(), part_state::refused);
  EXPECT_EQ(heads.state(), part_state::refused);
  EXPECT_EQ(loss.state(), part_state::ready);
  EXPECT_EQ(lines_with("it casts to bf16"), 2);
  const tensor<float> x = lacking.made(numbers(12, 1), {4, 3});
  const tensor<float> one = lacking.made({1.0F}, {1});
  for (int i = 0; i < 2; ++i) {
    const part_call call = network.forward(lacking.work, operand{network.x(), x});
    const part_call head = heads.forward(lacking.work, 0, call.y);
    const auto made = loss(lacking.work, {head.y}, {operand{loss.targets<float>(0), x}}, one);
    network.backward(lacking.work, call, heads.backward(lacking.work, 0, head, made.gradients[0]));
  }
  EXPECT_EQ(network.counts().low_precision, 2U);
  EXPECT_EQ(heads.counts(0).low_precision, 2U);
  EXPECT_EQ(told(loss.counts()), "eager 2, low_precision 2");
  EXPECT_EQ(network.counts().calls.forward_capture, 0U);
  run.end();
  EXPECT_EQ(lines_with("graphed loss 'error' was on and never engaged: 2 calls: 0 captured, 0 "
                       "replayed, 2 eager"),
            1);
}

}  // namespace
}  // namespace reprise::test
