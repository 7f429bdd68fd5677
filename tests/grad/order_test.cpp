// Calls that meet on a lane: other streams, other budgets, captures of somebody else, and what a
// forward that runs again must leave as it is.
#include "tests/support/order.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/replay/cache.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {

namespace {

// y = x, and the `table` beside it is x too: written with the same values by whoever runs last.
struct copying_op {
  explicit copying_op(std::string name, const buffer<float>* table_of = nullptr)
      : declared{std::move(name)},
        x{declared.in<float>("x", {any, row})},
        y{declared.out<float>("y")},
        table{table_of} {
    if (table != nullptr) declared.overwrites("table", as_tensor(table->all()));
  }

  graphed made(byte_budget& budget, const graphed_options& options = {}) const {
    return graphed{erased_op{declared,
                             [this](forward_scope& run) {
                               copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                               if (table != nullptr) copy(run, read(run[x]), write(table->all()));
                             },
                             [this](backward_scope& run) {
                               copy(run, read(run.grad(y)), write(run.grad(x)));
                             }},
                   budget, options};
  }

  signature declared;
  input<float> x;
  output<float> y;
  const buffer<float>* table;
};

class orders_of_calls : public grad_case {};
REPRISE_ON_EACH_DEVICE(orders_of_calls);

}  // namespace

// The gradient of a parameter is read and written by both; nobody but the lane orders them.
TEST_P(orders_of_calls, put_an_eager_backward_on_another_stream_behind_the_pool) {
  subject of{desk, op_kind::scaled};
  const stream other{dev()};
  of.step(0);
  for (int i = 1; i <= 4; ++i) {
    const subject::call here = of.forward(i);
    const subject::call held = of.forward(other, i + 10);  // eagerly
    const grad_result first = of.backward(here, i);
    const grad_result second = of.backward(other, held, i);
    order(other, s());
    of.expect_gradients(here, first, i);
    of.expect_gradients(held, second, i);
    of.expect_state();
  }
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 4, backward_capture 1, backward_replay 4, "
            "forward hold 4, backward hold 4");
}

TEST_P(orders_of_calls, put_an_inference_on_another_stream_behind_the_pool) {
  subject of{desk, op_kind::counted};
  const stream other{dev()};
  of.step(0);
  for (int i = 1; i <= 3; ++i) {
    const subject::call here = of.forward(i);
    of.expect_gradients(here, of.backward(other, here, i), i);
    order(other, s());
  }
  of.expect_state();
}

TEST_P(orders_of_calls, charge_each_budget_for_its_own_frames_and_outlive_both) {
  const copying_op first{"first"};
  const copying_op second{"second"};
  const tensor<float> x = desk.made(numbers(1, 400));
  byte_budget lasting{byte_budget::unlimited};
  graphed stays = second.made(lasting);
  forward_ticket of_the_gone;
  {
    byte_budget gone{byte_budget::unlimited};
    graphed goes = first.made(gone);
    of_the_gone = goes.forward(s(), {{first.x, x}}).ticket;
    const std::size_t before = gone.held();
    EXPECT_GE(before, 400 * sizeof(float));
    EXPECT_EQ(lasting.held(), 0u);
    EXPECT_EQ(stays.forward(s(), {{second.x, x}}).how, ran::captured);
    EXPECT_EQ(gone.held(), before);
    EXPECT_GE(lasting.held(), 400 * sizeof(float));
  }
  for (int i = 0; i < 3; ++i) {
    const forward_result done = stays.forward(s(), {{second.x, x}});
    EXPECT_BITS(desk.values_of(done[second.y].get()), numbers(1, 400));
    of_the_gone = {};
  }
}

TEST_P(orders_of_calls, find_a_gradient_buffer_that_is_another_by_now) {
  subject of{desk, op_kind::scaled};
  of.step(0);
  of.step(1);
  of.drop_gradients();
  trained_weight& weight = of.weights[0];
  const buffer<float> old = std::exchange(weight.gradient, buffer<float>{desk.memory, row, s()});
  weight.at.grad = as_tensor(weight.gradient.all());
  fill(s(), write{old}, 7.0F);
  of.step(2);
  of.expect_state();
  EXPECT_BITS(desk.values_of(old.all()), floats(row, 7.0F));
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 1, "
            "backward key 1");
}

TEST_P(orders_of_calls, retire_nothing_into_the_capture_of_somebody_else) {
  floats lent;
  tensor<float> gradient;
  {
    subject lends{desk, op_kind::rewinding, {.returned = gradients::moved}};
    lends.step(0);
    const subject::call made = lends.forward(1);
    gradient = lends.backward(made, 1)[lends.inputs[0]];
    lent = desk.values_of(gradient);
  }
  const copying_op declared{"captured"};
  graphed op = declared.made(desk.budget);
  const tensor<float> x = desk.made(numbers(1, 8));
  std::optional<forward_result> call;
  const graph captured = capture(s(), [&](stream_ref) {
    call = op.forward(s(), {{declared.x, x}});
  });
  EXPECT_BITS(desk.values_of(gradient), lent);
  const executable launched = captured.instantiate(s());
  for (int i = 0; i < 2; ++i) {
    op.forward(s(), {{declared.x, x}});  // retires what was left
    launched.launch(s());
    EXPECT_BITS(desk.values_of(gradient), lent);
    EXPECT_BITS(desk.values_of((*call)[declared.y].get()), numbers(1, 8));
  }
}

TEST_P(orders_of_calls, leave_overwrites_to_the_last_forward) {
  for (const bool records : {true, false}) {
    SCOPED_TRACE(records ? "recorded" : "eager");
    const buffer<float> table{desk.memory, 8, s()};
    const copying_op declared{"writes a table", &table};
    graphed op = declared.made(desk.budget, {.conflict = recompute{}, .record = records});
    for (int i = 0; i < 3; ++i) {
      const tensor<float> early = desk.made(numbers(i, 8));
      const tensor<float> late = desk.made(numbers(i + 10, 8));
      const tensor<float> dy = desk.made(numbers(i + 20, 8));
      const forward_result first = op.forward(s(), {{declared.x, early}});
      const forward_result second = op.forward(s(), {{declared.x, late}});
      const grad_result got = op.backward(s(), first.ticket, {gradient_of(declared.y, dy)});
      EXPECT_BITS(desk.values_of(got[declared.x].get()), numbers(i + 20, 8));
      EXPECT_BITS(desk.values_of(table.all()), numbers(i + 10, 8));
      op.backward(s(), second.ticket, {gradient_of(declared.y, dy)});
    }
    EXPECT_EQ(op.counts().stale_replay, records ? 6u : 0u);
  }
}

// A call there would wait for turns, or for the one capture of the process, that its own thread
// holds.
TEST_P(orders_of_calls, are_refused_inside_a_body) {
  const copying_op declared{"inner"};
  graphed inner = declared.made(desk.budget);
  const tensor<float> x = desk.made(numbers(1, 8));
  inner.forward(s(), {{declared.x, x}});

  signature outer{"outer"};
  const auto in = outer.in<float>("x", {any, row});
  const auto out = outer.out<float>("y");
  graphed around{erased_op{outer,
                           [&](forward_scope& run) {
                             inner.forward(s(), {{declared.x, x}});
                             copy(run, read(run[in]), write(run.make(out, run.shape(in))));
                           },
                           [](backward_scope&) {}},
                 desk.budget};
  const std::string said = message_of<usage_error>([&] { around.forward(s(), {{in, x}}); });
  EXPECT_TRUE(has(said, "op 'inner': it is called inside a body of op 'outer'")) << said;

  replay_cache cache{dev()};
  const step what{outer, [&](step_scope& run) {
                    inner.forward(run, {{declared.x, x}});
                    copy(run, read(run[in]), write(run.make(out, run.shape(in))));
                  }};
  const step_result done = cache.run(s(), what, {in(x.get())});
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_TRUE(has(done.why->text(), "the body of a step that is being recorded"))
      << done.why->text();
  inner.forward(s(), {{declared.x, x}});  // as ever
  EXPECT_EQ(inner.counts().forwards(), 3u);
}

TEST_P(orders_of_calls, refuse_handles_of_another_op) {
  subject of{desk, op_kind::rewinding};
  const copying_op other{"other"};
  of.step(0);
  const subject::call made = of.forward(1);
  const std::string said =
      message_of<usage_error>([&] { of.backward(made, 1, wanted::only(other.x)); });
  EXPECT_TRUE(has(said, "another op's inputs")) << said;
  of.expect_gradients(made, of.backward(made, 1), 1);
}

}  // namespace reprise::test
