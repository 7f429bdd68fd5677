// What would give wrong gradients in silence, and is refused by name or kept right: operands that
// moved, keys and facts that changed, memory that is given twice, calls out of place.
#include "reprise/device/graph.hpp"
#include "reprise/grad/bring.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/replay/recorder.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class refusals_of_ops : public grad_case {};
REPRISE_ON_EACH_DEVICE(refusals_of_ops);

// y = x, with whatever else its signature says.
struct passing_op {
  explicit passing_op(std::string name) : declared{std::move(name)} {}

  graphed made(byte_budget& budget, const graphed_options& options = {}) const {
    return graphed{erased_op{declared,
                             [this](forward_scope& run) {
                               copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                             },
                             [this](backward_scope& run) {
                               copy(run, read(run.grad(y)), write(run.grad(x)));
                             }},
                   budget, options};
  }

  signature declared;
  const input<float> x = declared.in<float>("x", {any, row});
  const output<float> y = declared.out<float>("y");
};

// Ops that are dropped leave their lent gradients to the next call, which moves them: it reads its
// operands and cotangents behind that.
TEST_P(refusals_of_ops, lent_gradients_of_an_op_that_is_gone_are_read_where_they_lie) {
  for (const bool records : {true, false}) {
    SCOPED_TRACE(records ? "recorded" : "eager");
    const passing_op declared{"reads"};
    graphed reads = declared.made(desk.budget, {.record = records});
    tensor<float> gradient;
    floats lent;
    forward_ticket last;
    {
      subject lends{desk, op_kind::rewinding, {.returned = gradients::moved}};
      lends.step(0);
      subject::call made = lends.forward(1);
      gradient = lends.backward(made, 1)[lends.inputs[0]];
      lent = desk.values_of(gradient);
      last = made.result.ticket;
    }
    const operand early{declared.x, gradient};
    last = {};
    const forward_result call = reads.forward(s(), {early});
    EXPECT_BITS(desk.values_of(call[declared.y].get()), lent);
    const grad_result got = reads.backward(s(), call.ticket, {gradient_of(declared.y, gradient)});
    EXPECT_BITS(desk.values_of(got[declared.x].get()), lent);
  }
}

TEST_P(refusals_of_ops, keys_and_facts_that_changed_since_the_forward_are_named) {
  for (const bool is_key : {true, false}) {
    for (const bool records : {true, false}) {
      SCOPED_TRACE((is_key ? "key " : "fact ") + std::to_string(records));
      std::uint64_t branch = 0;
      passing_op declared{"branches"};
      if (is_key) {
        declared.declared.key("branch", [&] { return branch; });
      } else {
        declared.declared.fact("branch", [&] { return branch; });
      }
      graphed op = declared.made(desk.budget, {.record = records});
      const tensor<float> x = desk.made(numbers(1, 8));
      const forward_result call = op.forward(s(), {{declared.x, x}});
      branch = 1;
      const std::string refused = message_of<stale_error>(
          [&] { op.backward(s(), call.ticket, {gradient_of(declared.y, x)}); });
      EXPECT_TRUE(has(refused, is_key ? "key 'branch'" : "fact 'branch address'") ||
                  has(refused, "'branch'"))
          << refused;
      EXPECT_TRUE(has(refused, "or the forward again")) << refused;
      branch = 0;
      EXPECT_BITS(
          desk.values_of(
              op.backward(s(), call.ticket, {gradient_of(declared.y, x)})[declared.x].get()),
          numbers(1, 8));
    }
  }
}

TEST_P(refusals_of_ops, another_key_says_what_differs) {
  subject of{desk, op_kind::rewinding};
  of.step(0, 2);
  const subject::call other = of.forward(1, 3);
  ASSERT_EQ(other.result.how, ran::eager);
  EXPECT_EQ(other.result.why->rule, "key");
  EXPECT_TRUE(has(other.result.why->text(), "x")) << other.result.why->text();
  EXPECT_TRUE(has(other.result.why->text(), "[3, 4]")) << other.result.why->text();
}

TEST_P(refusals_of_ops, outputs_over_inputs) {
  const passing_op declared{"in place"};
  graphed op = declared.made(desk.budget);
  const tensor<float> x = desk.made(numbers(1, 8));
  const std::string refused = message_of<usage_error>([&] {
    op.forward(s(), {{declared.x, x}, declared.y.into(x.get())});
  });
  EXPECT_TRUE(has(refused, "output 'y' is bound over input 'x'")) << refused;
  EXPECT_EQ(op.counts().forwards(), 0U);
}

TEST_P(refusals_of_ops, empty_tensors) {
  const passing_op declared{"empty"};
  graphed op = declared.made(desk.budget);
  const tensor<float> none;
  EXPECT_TRUE(has(message_of<usage_error>([&] {
                    op.forward(s(), {{declared.x, none}});
                  }),
                  "an empty tensor has no elements"));
  const forward_result call = op.forward(s(), {{declared.x, desk.made(numbers(1, 8))}});
  EXPECT_TRUE(has(message_of<usage_error>(
                      [&] { op.backward(s(), call.ticket, {gradient_of(declared.y, none)}); }),
                  "an empty tensor has no elements"));
}

TEST_P(refusals_of_ops, backwards_that_draw_past_their_forward) {
  philox_counter counter{3};
  signature declared{"draws"};
  declared.random(counter);
  const auto x = declared.in<float>("x", {any, row});
  const auto y = declared.out<float>("y");
  graphed op{erased_op{declared,
                       [&](forward_scope& run) {
                         run.draws(4);
                         copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                       },
                       [&](backward_scope& run) { run.draws(5); }},
             desk.budget};
  const tensor<float> in = desk.made(numbers(1, 8));
  const forward_result call = op.forward(s(), {{x, in}});
  const std::string refused =
      message_of<usage_error>([&] { op.backward(s(), call.ticket, {gradient_of(y, in)}); });
  EXPECT_TRUE(has(refused, "draws 5 random numbers and its forward drew 4")) << refused;
}

TEST_P(refusals_of_ops, reset_in_a_body_while_counts_may_be_asked_there) {
  graphed* self = nullptr;
  std::uint64_t seen = 0;
  signature declared{"asks"};
  const auto x = declared.in<float>("x", {any, row});
  const auto y = declared.out<float>("y");
  graphed op{erased_op{declared,
                       [&](forward_scope& run) {
                         seen = self->counts().forwards() + self->frames() + self->bytes();
                         graphed::reset();
                         copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                       },
                       [](backward_scope&) {}},
             desk.budget};
  self = &op;
  const std::string refused = message_of<usage_error>([&] {
    op.forward(s(), {{x, desk.made(numbers(1, 8))}});
  });
  EXPECT_TRUE(has(refused, "reset() is called inside a call")) << refused;
  EXPECT_EQ(seen, 0U);
}

TEST_P(refusals_of_ops, checkpoints_whose_forwards_are_pending_together) {
  checkpoint span{"span"};
  EXPECT_TRUE(has(message_of<usage_error>([&] { span.recompute([] { return 0; }); }),
                  "it has had no forward"));
  EXPECT_EQ(span.forward([] { return 1; }), 1);
  EXPECT_TRUE(has(message_of<usage_error>([&] { span.forward([] { return 2; }); }),
                  "owes the recompute of another forward"));
  EXPECT_EQ(span.recompute([] { return 3; }), 3);
  EXPECT_EQ(span.forward([] { return 4; }), 4);
}

// Memory that lies beside the frames is used again, though one op of the lane stays.
TEST_P(refusals_of_ops, ops_that_come_and_go_hold_no_more_memory_in_the_end) {
  subject stays{desk, op_kind::scaled};
  stays.step(0);
  const calls_since before{*desk.calls};
  const auto held = [&] { return before[seam_call::allocate] - before[seam_call::release]; };
  std::uint64_t early = 0;
  for (int i = 0; i < 60; ++i) {
    {
      subject goes{desk, op_kind::rewinding, {.returned = gradients::moved}};
      goes.step(i);
      goes.step(i + 1);
    }
    stays.step(i);
    if (i == 10) early = held();
  }
  EXPECT_LE(held(), early + 1) << "blocks of the device";
}

// A tensor that is made on one stream and read by a call on another is freed behind that call.
TEST_P(refusals_of_ops, tensors_go_behind_the_calls_that_read_them_on_any_stream) {
  const passing_op declared{"elsewhere"};
  graphed op = declared.made(desk.budget);
  const stream other{dev()};
  for (int i = 0; i < 4; ++i) {
    tensor<float> x = desk.made(numbers(i, 8));
    order(s(), other);
    const forward_result call = op.forward(other, {{declared.x, x}});
    x = {};
    const grad_result got =
        op.backward(other, call.ticket, {gradient_of(declared.y, call[declared.y])});
    order(other, s());
    EXPECT_BITS(desk.values_of(got[declared.x].get()), numbers(i, 8));
  }
}

// Kernels that follow words can follow one that they write through: that of a direct input leads to
// the caller's memory.
TEST_P(refusals_of_ops, a_step_that_writes_through_the_word_of_an_input_is_not_recorded) {
  signature declared{"writes its input"};
  const input<float> x = declared.in<float>("x", {row}, input_mode::direct);
  const output<float> y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const view<float> out = run.make(y, {row});
                    fill(run, write(out), 1.0F);
                    if (!run[x].is_direct()) return;  // an eager run
                    const std::size_t bytes = out.bytes();
                    const view<const std::uint8_t> from{
                        reinterpret_cast<const std::uint8_t*>(out.data()), bytes};
                    const auto* const word = static_cast<const std::byte*>(run[x].place());
                    launch(run, bring, read<std::uint8_t>{from},
                           write<std::uint8_t>{view<std::uint8_t>::through(word, bytes)});
                  }};
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const tensor<float> given = desk.made(numbers(1, row));
  const recorded done = maker.record(s(), what, {x(given.get())});
  ASSERT_FALSE(done.made.has_value());
  EXPECT_TRUE(has(done.first.why->text(), "writes to the direct input 'x'"))
      << done.first.why->text();
  EXPECT_BITS(desk.values_of(given), numbers(1, row));
}

TEST_P(refusals_of_ops,
       more_outputs_than_a_backward_has_words_for_are_refused_when_the_op_is_made) {
  signature declared{"many"};
  (void)declared.in<float>("x", {row});
  for (int i = 0; i < 63; ++i) (void)declared.out<float>("y" + std::to_string(i));
  const auto nothing = [](auto&) {};
  EXPECT_NO_THROW((graphed{erased_op{declared, nothing, nothing}, desk.budget}));
  trained_weight w{desk, numbers(1, row)};
  parameter trained{as_tensor(w.value.all()), {}, as_tensor(w.gradient.all())};
  declared.trains("w", trained);
  const std::string refused = message_of<usage_error>([&] {
    (void)graphed{erased_op{declared, nothing, nothing}, desk.budget};
  });
  EXPECT_TRUE(has(refused, "has 63 outputs")) << refused;
}

}  // namespace
}  // namespace reprise::test
