// What one call of a graphed op costs the device, whose backward is whose, and what is asked for.
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class calls_of_ops : public grad_case {};

REPRISE_ON_EACH_DEVICE(calls_of_ops);

// No input is copied, no parameter, no state that nobody reads; outputs and gradients are left
// where they are wanted by nodes.
TEST_P(calls_of_ops, are_one_launch_whatever_they_hand_out) {
  for (const op_kind kind : all_kinds) {
    SCOPED_TRACE(name_of(kind));
    subject of{desk, kind};
    of.step(0);
    of.step(1);
    const subject::call made = of.forward(2);
    EXPECT_EQ(of.calls(), "launch 1");
    (void)of.backward(made, 2);
    EXPECT_EQ(of.calls(), "launch 1");
    (void)of.backward(of.forward(3), 3, wanted::parameters_only());
    EXPECT_EQ(of.calls(), "launch 1");
  }
}

TEST_P(calls_of_ops, leave_outputs_where_into_says) {
  for (const bool record : {true, false}) {
    SCOPED_TRACE(record ? "recorded" : "eager");
    subject of{desk, op_kind::scaled, {.record = record}};
    const floats x = numbers(1, 8);
    const tensor<float> in = desk.made(x);
    const tensor<float> out = desk.made(floats(8, 0.0F));
    for (int i = 0; i < 3; ++i) {
      upload(s(), floats(8, 0.0F), out.get());
      const calls_since before{*desk.calls};
      const forward_result done =
          of.op().forward(s(), {operand{of.inputs[0], in}, operand{of.outputs[0].into(out.get())}});
      if (record && i > 0) {
        EXPECT_EQ(before[seam_call::copy], 1U);
      }
      EXPECT_EQ(done[of.outputs[0]].get().data(), out.get().data());
      EXPECT_BITS(desk.values_of(out), on_host::scaled(x, of.weight_values[0], 1.0F));
    }
    const tensor<float> small = desk.made(floats(4, 0.0F));
    const std::string refused = message_of<usage_error>([&] {
      of.op().forward(s(), {operand{of.inputs[0], in}, operand{of.outputs[0].into(small.get())}});
    });
    EXPECT_TRUE(has(refused, "output 'y'")) << refused;
    of.step(3);
  }
}

TEST_P(calls_of_ops, keep_what_they_were_given_from_the_host) {
  for (const on_conflict& policy : std::array<on_conflict, 2>{hold{}, recompute{}}) {
    SCOPED_TRACE(text_of(policy));
    subject of{desk, op_kind::rewinding, {.conflict = policy}};
    const tensor<float> dy = desk.made(numbers(50, 8));
    std::vector<forward_ticket> tickets;
    for (int i = 0; i < 3; ++i) {
      floats x = numbers(i, 8);
      const forward_result done = of.op().forward(s(), {operand{of.inputs[0].from_host(x)}});
      EXPECT_BITS(desk.values_of(done[of.outputs[0]].get()), on_host::rewinding(x));
      x.assign(8, 1e30F);  // it is the caller's again
      tickets.push_back(done.ticket);
    }
    for (int i = 0; i < 3; ++i) {
      const grad_result got = of.op().backward(s(), tickets[static_cast<std::size_t>(i)],
                                               {gradient_of(of.outputs[0], dy)});
      EXPECT_BITS(desk.values_of(got[of.inputs[0]].get()),
                  on_host::rewinding_dx(numbers(50, 8), numbers(i, 8)));
    }
  }
}

TEST_P(calls_of_ops, owe_nothing_once_their_tickets_are_dropped) {
  subject of{desk, op_kind::scaled};
  of.step(0);
  {
    const subject::call dropped = of.forward(1);
    const forward_ticket copy = dropped.result.ticket;
    EXPECT_EQ(of.forward(2).result.how, ran::eager) << "it is owed";
  }
  EXPECT_EQ(of.forward(3).result.how, ran::replayed);
  EXPECT_EQ(of.forward(4).result.how, ran::replayed);
  EXPECT_EQ(of.counts(), "forward_capture 1, forward_replay 3, backward_capture 1, forward hold 1");
}

TEST_P(calls_of_ops, take_the_slot_that_is_free_and_then_the_one_used_longest_ago) {
  subject of{desk, op_kind::scaled, {.conflict = slots{2}}};
  const subject::call first = of.forward(1);
  const subject::call second = of.forward(2);
  const subject::call third = of.forward(3);  // takes the frame of the first
  const auto backward = [&](const subject::call& call, int values) {
    of.expect_gradients(call, of.backward(call, values), values);
  };
  // The first frame is written again, so the second is revoked by the pool or is not, and exact.
  backward(third, 3);
  EXPECT_EQ(of.op().counts().stale_replay, 0U);
  backward(first, 1);
  EXPECT_EQ(of.op().counts().stale_replay, 1U);
  backward(second, 2);
  of.expect_state();
  EXPECT_EQ(of.op().frames(), 2U);
  EXPECT_EQ(of.op().counts().forward_capture, 2U);
  EXPECT_EQ(of.op().counts().forward_replay, 1U);
  EXPECT_EQ(of.op().counts().backwards(), 3U);
}

TEST_P(calls_of_ops, leave_what_they_handed_out_when_the_op_is_gone) {
  std::optional<subject> of{std::in_place, desk, op_kind::remembering,
                            graphed_options{.returned = gradients::moved}};
  of->step(0);
  const subject::call first = of->forward(1);
  const grad_result got = of->backward(first, 1);
  const subject::call second = of->forward(2);
  const floats dx = desk.values_of(got[of->inputs[0]]);
  const floats y = desk.values_of(second.result[of->outputs[0]]);
  const tensor<float> gradient = got[of->inputs[0]];
  const tensor<float> out = second.result[of->outputs[0]];
  replayed_state<float> state = second.result.state(of->outputs[1]);
  of.reset();
  EXPECT_BITS(desk.values_of(gradient), dx);
  EXPECT_BITS(desk.values_of(out), y);
  EXPECT_BITS(desk.values_of(state.read(s())), on_host::remembering(second.x).second)
      << "its ticket keeps the frame";
}

TEST_P(calls_of_ops, of_a_copy_are_its_own) {
  subject of{desk, op_kind::scaled, {.conflict = slots{2}, .keys = 3}};
  of.step(1);
  graphed copy{of.op()};
  EXPECT_EQ(copy.name(), of.op().name());
  EXPECT_EQ(copy.options(), of.op().options());
  EXPECT_EQ(told(copy), "");
  EXPECT_EQ(copy.frames(), 0U);
  const subject::call pending = of.forward(2);
  const tensor<float> dy = desk.made(numbers(3, 8));
  const std::string refused = message_of<usage_error>(
      [&] { copy.backward(s(), pending.result.ticket, {gradient_of(of.outputs[0], dy)}); });
  EXPECT_TRUE(has(refused, "another op's forward")) << refused;
  const floats x = numbers(4, 8);
  const forward_result own = copy.forward(s(), {{of.inputs[0], desk.made(x)}});
  EXPECT_EQ(own.how, ran::captured);
  EXPECT_BITS(desk.values_of(own[of.outputs[0]].get()),
              on_host::scaled(x, of.weight_values[0], 1.0F));
  of.expect_gradients(pending, of.backward(pending, 2), 2);
  of.expect_state();
}

TEST_P(calls_of_ops, form_a_gradient_that_was_not_recorded_eagerly) {
  subject of{desk, op_kind::joined};
  const wanted only_a = wanted::only(of.inputs[0]);
  const auto backward = [&](int values, const wanted& what) {
    const subject::call made = of.forward(values);
    of.expect_gradients(made, of.backward(made, values, what), values, what);
  };
  backward(1, only_a);
  backward(2, {});      // more than was recorded
  backward(3, only_a);  // and that replays again
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 1, "
            "backward key 1");
}

TEST_P(calls_of_ops, take_an_input_that_is_left_out_for_another_key) {
  subject of{desk, op_kind::joined, {.keys = 2}};
  of.step(1);
  of.leaves_b_out = true;
  of.step(2);
  of.step(3);
  of.leaves_b_out = false;
  of.step(4);
  EXPECT_EQ(of.counts(),
            "forward_capture 2, forward_replay 2, backward_capture 2, backward_replay 2");
}

TEST_P(calls_of_ops, take_cotangents_that_are_left_out_for_zero) {
  for (const bool record : {true, false}) {
    SCOPED_TRACE(record ? "recorded" : "eager");
    subject of{desk, op_kind::remembering, {.record = record}};
    const floats x = numbers(1, 8);
    const floats dy = numbers(2, 8);
    const floats dm = numbers(3, 8);
    const tensor<float> in = desk.made(x);
    const tensor<float> y = desk.made(dy);
    const tensor<float> m = desk.made(dm);
    const auto backward = [&](bool with_memory) {
      const forward_result call = of.op().forward(s(), {{of.inputs[0], in}});
      std::vector<operand> given{gradient_of(of.outputs[0], y)};
      if (with_memory) given.push_back(gradient_of(of.outputs[1], m));
      const grad_result got = of.op().backward(s(), call.ticket, given);
      EXPECT_BITS(desk.values_of(got[of.inputs[0]].get()),
                  on_host::remembering_dx(dy, with_memory ? dm : floats{}, x));
    };
    for (const bool with_memory : {false, true, false, true}) backward(with_memory);
    EXPECT_EQ(of.counts(), record ? "forward_capture 1, forward_replay 3, backward_capture 1, "
                                    "backward_replay 1, backward key 2"
                                  : "forward suspended 4, backward suspended 4");
  }
}

TEST_P(calls_of_ops, refuse_cotangents_that_do_not_fit) {
  subject of{desk, op_kind::remembering};
  const subject::call pending = of.forward(1);
  const tensor<float> dy = desk.made(numbers(2, 8));
  const tensor<float> small = desk.made(numbers(2, 4));
  const output<float>& y = of.outputs[0];
  const auto refusal = [&](std::span<const operand> given) {
    return message_of<usage_error>(
        [&] { of.op().backward(s(), pending.result.ticket, operands{given}); });
  };
  EXPECT_TRUE(has(refusal({}), "no cotangent"));
  const std::array twice{gradient_of(y, dy), gradient_of(y, dy)};
  EXPECT_TRUE(has(refusal(twice), "is given twice"));
  const std::array short_of{gradient_of(y, small)};
  EXPECT_TRUE(has(refusal(short_of), "has 4 elements of f32 and the output 8 of f32"));
  subject other{desk, op_kind::remembering, {}, {}, "other"};
  const std::array foreign{gradient_of(other.outputs[0], dy)};
  EXPECT_TRUE(has(refusal(foreign), "no output of this op"));
  // The body needs that of y; the call stays owed.
  const std::array only_memory{gradient_of(of.outputs[1], dy)};
  const std::string refused = refusal(only_memory);
  EXPECT_TRUE(has(refused, "the cotangent of 'y', which the caller did not give")) << refused;
  of.expect_gradients(pending, of.backward(pending, 1), 1);
  of.step(2);
}

TEST_P(calls_of_ops, come_behind_the_pool_on_any_stream) {
  subject of{desk, op_kind::scaled, {.conflict = recompute{}}};
  const stream other{dev()};
  of.step(0);
  for (int i = 1; i <= 4; ++i) {
    const subject::call here = of.forward(i);
    const subject::call there = of.forward(other, i + 10);
    const grad_result first = of.backward(other, here, i);
    const grad_result second = of.backward(there, i);
    order(other, s());
    of.expect_output(here);
    of.expect_output(there);
    of.expect_gradients(here, first, i);
    of.expect_gradients(there, second, i);
    of.expect_state();
  }
}

TEST_P(calls_of_ops, of_several_streams_leave_their_memory_behind_the_last_one) {
  const stream other{dev()};
  for (const op_kind kind : {op_kind::rewinding, op_kind::counted, op_kind::twofold}) {
    for (int round = 0; round < 3; ++round) {
      subject of{desk, kind};
      const subject::call made = of.forward(other, 1);
      of.expect_gradients(made, of.backward(made, 1), 1);  // waits for the other stream
      order(s(), other);
      graphed::reset();
    }
  }
}

TEST_P(calls_of_ops, of_no_budget_run_eagerly_and_say_so_once) {
  byte_budget none{1000};
  signature declared{"poor"};
  const auto x = declared.in<float>("x", {any, row});
  const auto y = declared.out<float>("y");
  graphed op{
      erased_op{
          declared,
          [&](forward_scope& run) { copy(run, read(run[x]), write(run.make(y, run.shape(x)))); },
          [&](backward_scope& run) { copy(run, read(run.grad(y)), write(run.grad(x))); }},
      none};
  const floats in = numbers(1, 400);
  const floats dy = numbers(2, 400);
  for (int i = 0; i < 3; ++i) {
    const forward_result done = op.forward(s(), {{x, desk.made(in)}});
    EXPECT_EQ(done.how, ran::eager);
    EXPECT_TRUE(has(done.why->text(), "budget")) << done.why->text();
    EXPECT_BITS(desk.values_of(done[y].get()), in);
    const grad_result got = op.backward(s(), done.ticket, {gradient_of(y, desk.made(dy))});
    EXPECT_BITS(desk.values_of(got[x].get()), dy);
  }
  EXPECT_EQ(told(op), "forward capture_failed 3, backward capture_failed 3");
  EXPECT_LE(none.most_held(), none.limit());
  EXPECT_EQ(lines_with("op 'poor' runs eagerly (capture_failed)", "budget"), 1);
}

TEST_P(calls_of_ops, of_a_budget_for_the_forward_alone_run_their_backwards_eagerly) {
  // As much as the forward of such an op holds, and a little more.
  std::size_t held = 0;
  {
    subject of{desk, op_kind::scaled};
    (void)of.forward(1);
    held = desk.budget.held();
  }
  EXPECT_GT(held, 0U);
  byte_budget enough{held + 16};
  trained_weight weight{desk, numbers(40, row)};
  graphed_op op{scenarios::scaled{"tight", weight.at}, enough};
  const floats x = numbers(1, 8);
  const floats dy = numbers(2, 8);
  for (int i = 0; i < 3; ++i) {
    const forward_result done = op.forward(s(), {{op.op().x, desk.made(x)}});
    const grad_result got = op.backward(s(), done.ticket, {gradient_of(op.op().y, desk.made(dy))});
    EXPECT_BITS(desk.values_of(got[op.op().x].get()),
                on_host::scaled_dx(dy, numbers(40, row), 1.0F));
    weight.at.has_grad = false;
  }
  EXPECT_EQ(told(op), "forward_capture 1, forward_replay 2, backward backward 3");
  EXPECT_LE(enough.most_held(), enough.limit());
  EXPECT_EQ(lines_with("op 'tight' runs eagerly (backward)", "budget"), 1);
}

}  // namespace
}  // namespace reprise::test
