// The field's cases about state, scale and random numbers in replayed training: G11 to G15.
#include "reprise/device/faulty.hpp"
#include "scenarios/grad_kernels.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class state_cases : public grad_case {};

REPRISE_ON_EACH_DEVICE(state_cases);

TEST_P(state_cases, G11_a_state_that_is_replaced_by_another_buffer_refuses_the_recording) {
  pool elsewhere{dev(), "per call"};
  buffer<float> counter{elsewhere, 1, s()};
  const buffer<float> one{desk.memory, 1, s()};
  upload(s(), {0.0F}, counter.all());
  upload(s(), {1.0F}, one.all());
  signature declared{"replacing"};
  const auto x = declared.in<float>("x", {any, row});
  const auto y = declared.out<float>("y");
  graphed op{
      erased_op{declared,
                [&](forward_scope& run) {
                  buffer<float> next{elsewhere, 1, run};
                  launch(run, scenarios::sum_of, read(counter), read(one), write(next));
                  counter = std::move(next);
                  copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                },
                [&](backward_scope& run) { copy(run, read(run.grad(y)), write(run.grad(x))); }},
      desk.budget};
  const floats in = numbers(1, 8);
  const tensor<float> at = desk.made(in);
  for (int i = 1; i <= 5; ++i) {
    const forward_result done = op.forward(s(), {{x, at}});
    EXPECT_EQ(done.how, ran::eager);
    EXPECT_TRUE(has(done.why->text(), "kernel 'scenario_sum_of' writes 4 bytes"))
        << done.why->text();
    EXPECT_BITS(desk.values_of(done[y].get()), in);
    EXPECT_BITS(desk.values_of(counter.all()), floats{static_cast<float>(i)});
  }
  EXPECT_EQ(told(op), "forward capture_failed 5");
  EXPECT_EQ(lines_with("op 'replacing'"), 1) << "said once";
}

TEST_P(state_cases, G11_declared_state_moves_by_one_in_each_replay) {
  subject of{desk, op_kind::counted};
  for (int i = 0; i < 6; ++i) {
    const subject::call made = of.forward(i);
    of.expect_state();
    of.expect_gradients(made, of.backward(made, i), i);
    of.expect_state();
  }
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 5, backward_capture 1, backward_replay 5");
}

TEST_P(state_cases, G11_a_weight_in_another_buffer_runs_eagerly_from_there) {
  subject of{desk, op_kind::scaled};
  of.step(1);
  of.step(2);
  {
    trained_weight& weight = of.weights[0];
    of.weight_values[0] = numbers(77, row);
    buffer<float> moved{desk.memory, row, s()};
    const version_change moves{weight.at.version};
    weight.value = std::move(moved);
    upload(s(), of.weight_values[0], weight.value.all());
    weight.at.value = as_tensor(weight.value.all());
  }
  of.step(3);
  of.step(4);
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
            "forward key 2, backward key 2");
  graphed::reset();
  of.step(5);
  of.step(6);
  EXPECT_EQ(of.counts(),
            "forward_capture 2, forward_replay 2, backward_capture 2, backward_replay 2, "
            "forward key 2, backward key 2");
}

TEST_P(state_cases, G12_recording_moves_state_and_generator_as_one_forward_does) {
  for (const op_kind kind : all_kinds) {
    SCOPED_TRACE(name_of(kind));
    subject of{desk, kind};
    const subject::call made = of.forward(1);
    EXPECT_EQ(made.result.how, ran::captured);
    of.expect_state();  // and no gradient is there
    for (const trained_weight& one : of.weights) {
      EXPECT_BITS(desk.values_of(one.gradient.all()), floats(row, 99.0F)) << "nobody wrote it";
    }
    of.expect_gradients(made, of.backward(made, 1), 1);
    of.expect_state();
    of.step(2);
  }
}

TEST_P(state_cases, G12_a_warm_up_that_throws_moves_them_once_all_the_same) {
  for (const op_kind kind : all_kinds) {
    for (std::uint64_t kernel = 1; kernel <= 2; ++kernel) {
      SCOPED_TRACE(name_of(kind) + ", kernel " + std::to_string(kernel));
      const auto plan = std::make_shared<fault_plan>();
      grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
      subject of{at, kind};
      of.at_call = [&] { plan->fail_call(seam_call::kernel, kernel); };
      const subject::call made = of.forward(1);
      EXPECT_TRUE(plan->fired());
      of.at_call = nullptr;
      EXPECT_EQ(made.result.how, ran::eager);
      EXPECT_TRUE(has(made.result.why->text(), "injected fault")) << made.result.why->text();
      of.expect_output(made);
      of.expect_state();
      of.expect_gradients(made, of.backward(made, 1), 1);
      of.step(2);
      EXPECT_EQ(of.counts(), "forward capture_failed 2, backward capture_failed 2");
    }
  }
}

TEST_P(state_cases, G13_what_never_engages_says_why) {
  subject of{desk, op_kind::scaled, {.record = false}};
  for (int i = 0; i < 3; ++i) of.step(i);
  EXPECT_EQ(of.counts(), "forward suspended 3, backward suspended 3");
  const subject::call made = of.forward(4);
  ASSERT_NE(made.result.why, nullptr);
  EXPECT_EQ(made.result.why->rule, "suspended");
  EXPECT_TRUE(has(made.result.why->text(), "graphed_options::record")) << made.result.why->text();
  EXPECT_EQ(lines_with("op 'scaled' runs eagerly (suspended)"), 1);
  EXPECT_EQ(of.op().frames(), 0U);
  EXPECT_EQ(of.op().bytes(), 0U);
}

TEST_P(state_cases, G13_what_is_recorded_again_is_the_same_work_on_the_weights_of_now) {
  subject of{desk, op_kind::twofold};
  const subject::call first = of.forward(1);
  const std::uint64_t recorded = of.calls(seam_call::kernel);
  (void)of.backward(first, 1);
  const std::uint64_t recorded_backward = of.calls(seam_call::kernel);
  of.step(2);
  of.descend(0.01F);
  graphed::reset();
  EXPECT_EQ(of.op().frames(), 0U);
  const subject::call again = of.forward(3);
  EXPECT_EQ(again.result.how, ran::captured);
  EXPECT_EQ(of.calls(seam_call::kernel), recorded);
  of.expect_output(again);
  of.expect_gradients(again, of.backward(again, 3), 3);
  EXPECT_EQ(of.calls(seam_call::kernel), recorded_backward);
  of.step(4);
  EXPECT_EQ(of.counts(),
            "forward_capture 2, forward_replay 2, backward_capture 2, backward_replay 2");
}

TEST_P(state_cases, G14_a_loss_scale_is_followed_wherever_it_lies) {
  subject of{desk, op_kind::rewinding};
  of.step(1);
  const floats x = numbers(2, 8);
  const tensor<float> in = desk.made(x);
  const floats base = numbers(3, 8);
  const tensor<float> in_place = desk.made(base);
  for (const bool anew : {false, true}) {
    for (const float scale : {1024.0F, 512.0F, 1024.0F}) {
      SCOPED_TRACE(std::to_string(scale) + (anew ? " in a new buffer" : " in place"));
      const floats dy = times(scale, base);
      const tensor<float> at = anew ? desk.made(dy) : in_place;
      if (!anew) upload(s(), dy, at.get());
      const forward_result call = of.op().forward(s(), {{of.inputs[0], in}});
      const grad_result got = of.op().backward(s(), call.ticket, {gradient_of(of.outputs[0], at)});
      EXPECT_EQ(got.how, ran::replayed);
      EXPECT_BITS(desk.values_of(got[of.inputs[0]].get()), on_host::rewinding_dx(dy, x));
    }
  }
}

// A scale that is an operand of the forward, as a scaled loss has it.
TEST_P(state_cases, G14_a_scale_among_the_operands_is_followed_too) {
  subject of{desk, op_kind::joined};
  of.step(1);
  const floats x = numbers(2, 8);
  const floats dy = numbers(3, 8);
  const tensor<float> in = desk.made(x);
  const tensor<float> back = desk.made(dy);
  tensor<float> in_place = desk.made(floats(8, 0.0F));
  for (const bool anew : {false, true}) {
    for (const float scale : {1024.0F, 512.0F, 1024.0F}) {
      const floats scales(8, scale);
      tensor<float> at = anew ? desk.made(scales) : in_place;
      if (!anew) upload(s(), scales, at.get());
      at.changed();
      const forward_result call = of.op().forward(s(), {{of.inputs[0], in}, {of.inputs[1], at}});
      const grad_result got =
          of.op().backward(s(), call.ticket, {gradient_of(of.outputs[0], back)});
      EXPECT_EQ(got.how, ran::replayed);
      EXPECT_BITS(desk.values_of(call[of.outputs[0]].get()), on_host::joined(x, scales));
      EXPECT_BITS(desk.values_of(got[of.inputs[0]].get()), on_host::joined_da(dy, scales));
      EXPECT_BITS(desk.values_of(got[of.inputs[1]].get()), on_host::joined_db(dy, x));
    }
  }
}

TEST_P(state_cases, G15_a_backward_has_the_mask_of_its_own_forward) {
  for (const on_conflict& policy : std::array<on_conflict, 3>{hold{}, recompute{}, slots{2}}) {
    SCOPED_TRACE(text_of(policy));
    subject of{desk, op_kind::noisy, {.conflict = policy}};
    of.step(0);
    for (int i = 1; i <= 5; ++i) {
      const subject::call first = of.forward(i);
      of.counter.advance(3);  // somebody else draws from the generator
      const subject::call second = of.forward(i + 10);
      EXPECT_NE(first.from.next, second.from.next);
      of.counter.advance(5);
      of.expect_output(first);
      of.expect_output(second);
      const std::uint64_t next = of.counter.next();
      of.expect_gradients(first, of.backward(first, i), i);
      EXPECT_EQ(of.counter.next(), next) << "no backward moves it";
      of.counter.advance(7);
      of.expect_gradients(second, of.backward(second, i), i);
      EXPECT_EQ(of.counter.next(), next + 7);
    }
  }
}

TEST_P(state_cases, G15_no_replay_reads_the_generator_back) {
  subject of{desk, op_kind::noisy};
  of.step(0);
  of.step(1);
  const subject::call made = of.forward(2);
  EXPECT_EQ(of.calls(), "launch 1");
  (void)of.backward(made, 2);
  EXPECT_EQ(of.calls(), "launch 1");
}

}  // namespace
}  // namespace reprise::test
