// What a call keeps of its operands, and what it refuses once they have changed.
#include "scenarios/grad_kernels.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class operands_of_ops : public grad_case {
 protected:
  const floats x = numbers(1, 8);
  const floats dy = numbers(2, 8);
  tensor<float> back = desk.made(dy);
};

REPRISE_ON_EACH_DEVICE(operands_of_ops);

TEST_P(operands_of_ops, are_kept_by_the_call_where_they_are_tensors) {
  subject of{desk, op_kind::rewinding, {.conflict = recompute{}}};
  std::vector<forward_ticket> tickets;
  for (int i = 0; i < 3; ++i) {
    tensor<float> in = desk.made(numbers(i, 8));
    tickets.push_back(of.op().forward(s(), {{of.inputs[0], in}}).ticket);
  }
  // Their memory would be somebody else's by now.
  std::vector<tensor<float>> others;
  for (int i = 0; i < 8; ++i) others.push_back(desk.made(floats(8, 1e30F)));
  for (int i = 0; i < 3; ++i) {
    const grad_result got = of.op().backward(s(), tickets[static_cast<std::size_t>(i)],
                                             {gradient_of(of.outputs[0], back)});
    EXPECT_BITS(desk.values_of(got[of.inputs[0]].get()), on_host::rewinding_dx(dy, numbers(i, 8)));
  }
  EXPECT_EQ(of.op().counts().stale_replay, 3U);
}

// Whichever way the call took.
TEST_P(operands_of_ops, that_changed_in_place_are_an_error_and_no_recompute) {
  for (const bool record : {true, false}) {
    SCOPED_TRACE(record ? "recorded" : "eager");
    subject of{desk, op_kind::joined, {.record = record}};
    of.step(0);
    tensor<float> a = desk.made(x);
    tensor<float> b = desk.made(dy);
    const forward_result call = of.op().forward(s(), {{of.inputs[0], a}, {of.inputs[1], b}});
    b.changed();
    EXPECT_EQ(b.version(), 2U);
    for (int i = 0; i < 2; ++i) {
      const std::string refused = message_of<stale_error>(
          [&] { of.op().backward(s(), call.ticket, {gradient_of(of.outputs[0], back)}); });
      EXPECT_TRUE(has(refused, "op 'joined': input 'b' was changed in place")) << refused;
      EXPECT_TRUE(has(refused, "before the change, or the forward again")) << refused;
    }
    // The forward again, as it says.
    const forward_result again = of.op().forward(s(), {{of.inputs[0], a}, {of.inputs[1], b}});
    const grad_result got = of.op().backward(s(), again.ticket, {gradient_of(of.outputs[0], back)});
    EXPECT_BITS(desk.values_of(got[of.inputs[1]].get()), on_host::joined_db(dy, x));
  }
}

TEST_P(operands_of_ops, are_watched_as_views_where_a_version_is_given) {
  subject of{desk, op_kind::rewinding};
  const tensor<float> in = desk.made(x);
  version_counter version;
  const auto forward = [&](bool stamped) {
    const view<const float> there = in.get();
    const operand one =
        stamped ? operand{of.inputs[0], there, version} : operand{of.inputs[0](there)};
    return of.op().forward(s(), {one}).ticket;
  };
  const auto backward = [&](const forward_ticket& ticket) {
    return of.op().backward(s(), ticket, {gradient_of(of.outputs[0], back)});
  };
  const forward_ticket stamped = forward(true);
  version.bump();
  const std::string refused = message_of<stale_error>([&] { backward(stamped); });
  EXPECT_TRUE(has(refused, "input 'x' was changed in place")) << refused;
  const forward_ticket fresh = forward(true);
  EXPECT_BITS(desk.values_of(backward(fresh)[of.inputs[0]].get()), on_host::rewinding_dx(dy, x));
  const forward_ticket plain = forward(false);
  version.bump();
  EXPECT_BITS(desk.values_of(backward(plain)[of.inputs[0]].get()), on_host::rewinding_dx(dy, x));
}

TEST_P(operands_of_ops, that_are_parameters_may_not_move_between_forward_and_backward) {
  for (const bool record : {true, false}) {
    SCOPED_TRACE(record ? "recorded" : "eager");
    subject of{desk, op_kind::twofold, {.record = record}};
    of.step(0);
    of.drop_gradients();
    const subject::call pending = of.forward(1);
    of.weights[1].set(desk, of.weight_values[1] = numbers(60, row));
    const std::string refused = message_of<stale_error>([&] { (void)of.backward(pending, 1); });
    EXPECT_TRUE(has(refused, "op 'twofold': parameter 'v' was changed in place")) << refused;
    of.expect_state();
    of.step(2);
  }
}

// A parameter that is used and not trained: its version is a fact.
TEST_P(operands_of_ops, that_are_frozen_parameters_are_a_fact_of_the_recording) {
  trained_weight frozen{desk, numbers(40, row)};
  frozen.at.grad = {};
  signature declared{"frozen"};
  const auto in = declared.in<float>("x", {any, row});
  const auto y = declared.out<float>("y");
  declared.uses("w", frozen.at);
  graphed op{erased_op{declared,
                       [&](forward_scope& run) {
                         launch(run, scenarios::product, read(run[in]),
                                read(elements_of<const float>(frozen.at.value)),
                                write(run.make(y, run.shape(in))));
                       },
                       [&](backward_scope& run) {
                         launch(run, scenarios::product, read(run.grad(y)),
                                read(elements_of<const float>(frozen.at.value)),
                                write(run.grad(in)));
                       }},
             desk.budget};
  floats weight = numbers(40, row);
  const auto step = [&] {
    const forward_result call = op.forward(s(), {{in, desk.made(x)}});
    EXPECT_BITS(desk.values_of(call[y].get()), on_host::scaled(x, weight, 1.0F));
    const grad_result got = op.backward(s(), call.ticket, {gradient_of(y, back)});
    EXPECT_BITS(desk.values_of(got[in].get()), on_host::scaled_dx(dy, weight, 1.0F));
  };
  step();
  step();
  frozen.set(desk, weight = numbers(41, row));
  step();
  step();
  EXPECT_EQ(told(op),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
            "forward key 2, backward key 2");
  graphed::reset();
  step();
  step();
  EXPECT_EQ(told(op),
            "forward_capture 2, forward_replay 2, backward_capture 2, backward_replay 2, "
            "forward key 2, backward key 2");
}

TEST_P(operands_of_ops, of_other_ops_and_other_types_are_refused_before_anything_runs) {
  subject of{desk, op_kind::counted};
  subject other{desk, op_kind::counted, {}, {}, "other"};
  of.step(1);
  const tensor<float> in = desk.made(x);
  EXPECT_THROW(of.op().forward(s(), {{other.inputs[0], in}}), usage_error);
  EXPECT_THROW(of.op().forward(s(), {}), usage_error);
  EXPECT_THROW(of.op().forward(s(), {{of.inputs[0], in}, {of.inputs[0], in}}), usage_error);
  EXPECT_THROW(of.op().infer(s(), {}), usage_error);
  of.expect_state();
  const subject::call made = of.forward(2);
  EXPECT_THROW((void)made.result[other.outputs[0]], usage_error);
  const grad_result got = of.backward(made, 2);
  EXPECT_THROW((void)got[other.inputs[0]], usage_error);
  of.expect_state();
}

// A gradient that is handed out where it lies moves at the next backward of its op; a call that was
// given it, by whichever way its backward comes, has the gradient that it was given.
TEST_P(operands_of_ops, that_are_lent_gradients_are_those_of_the_call_though_they_move) {
  for (const bool replays : {true, false}) {
    SCOPED_TRACE(replays ? "recorded" : "eager");
    subject lends{desk, op_kind::rewinding, {.returned = gradients::moved}};
    subject of{desk, op_kind::joined, {.record = replays}};
    lends.step(0);
    of.step(0);
    const floats other = numbers(3, 8);
    const tensor<float> b = desk.made(other);
    const subject::call made = lends.forward(1);
    grad_result got = lends.backward(made, 1);
    const floats lent = desk.values_of(got[lends.inputs[0]]);
    const tensor<float> gradient = got[lends.inputs[0]];
    got = {};
    const forward_result call = of.op().forward(s(), {{of.inputs[0], gradient}, {of.inputs[1], b}});
    EXPECT_BITS(desk.values_of(call[of.outputs[0]]), on_host::joined(lent, other));
    lends.step(2);
    lends.step(3);
    EXPECT_BITS(desk.values_of(gradient), lent);
    const grad_result back_again =
        of.op().backward(s(), call.ticket, {gradient_of(of.outputs[0], back)});
    EXPECT_BITS(desk.values_of(back_again[of.inputs[1]]), on_host::joined_db(dy, lent));
  }
}

// Of one op that runs twice in a network: what its second call hands out is the cotangent of its
// first, on the same frame.
TEST_P(operands_of_ops, that_are_lent_gradients_are_cotangents_of_the_op_that_lent_them) {
  for (const on_conflict& policy : std::array<on_conflict, 3>{hold{}, recompute{}, slots{2}}) {
    for (const gradients returned : {gradients::cloned, gradients::moved}) {
      SCOPED_TRACE(text_of(graphed_options{.conflict = policy, .returned = returned}));
      subject of{desk, op_kind::rewinding, {.conflict = policy, .returned = returned}};
      const tensor<float> in = desk.made(x);
      for (int i = 0; i < 4; ++i) {
        const forward_result first = of.op().forward(s(), {{of.inputs[0], in}});
        const forward_result second = of.op().forward(s(), {{of.inputs[0], first[of.outputs[0]]}});
        const floats y = on_host::rewinding(x);
        EXPECT_BITS(desk.values_of(second[of.outputs[0]]), on_host::rewinding(y));
        const grad_result upper =
            of.op().backward(s(), second.ticket, {gradient_of(of.outputs[0], back)});
        const grad_result lower =
            of.op().backward(s(), first.ticket, {gradient_of(of.outputs[0], upper[of.inputs[0]])});
        const floats between = on_host::rewinding_dx(dy, y);
        EXPECT_BITS(desk.values_of(lower[of.inputs[0]]), on_host::rewinding_dx(between, x));
        EXPECT_BITS(desk.values_of(upper[of.inputs[0]]), between);
      }
    }
  }
}

TEST(ops, whose_forwards_cannot_run_again_are_refused_when_they_are_made) {
  grad_desk desk{"cpu"};
  const buffer<float> state{desk.memory, 1, desk.work};
  signature declared{"stateful"};
  declared.state("running", as_tensor(state.all()));
  const erased_op op{declared, [](forward_scope&) {}, [](backward_scope&) {}};
  const std::string refused = message_of<usage_error>([&] { graphed{op, desk.budget}; });
  EXPECT_TRUE(has(refused, "op 'stateful'")) << refused;
  EXPECT_TRUE(has(refused, "the state 'running'")) << refused;
  EXPECT_TRUE(has(refused, "outputs_ignore_state")) << refused;
}

TEST(ops, that_train_what_has_no_gradient_buffer_are_refused_when_they_are_made) {
  grad_desk desk{"cpu"};
  trained_weight weight{desk, numbers(1, row)};
  const buffer<float> small{desk.memory, 2, desk.work};
  for (const tensor_ref& grad : {tensor_ref{}, as_tensor(small.all())}) {
    weight.at.grad = grad;
    signature declared{"training"};
    declared.trains("w", weight.at);
    const erased_op op{declared, [](forward_scope&) {}, [](backward_scope&) {}};
    const std::string refused = message_of<usage_error>([&] { graphed{op, desk.budget}; });
    EXPECT_TRUE(has(refused, "parameter 'w' is trained and has no gradient buffer")) << refused;
  }
}

}  // namespace
}  // namespace reprise::test
