// Spans of a program around calls: suspended, other captures, checkpoints, and reset.
#include "reprise/device/graph.hpp"
#include "reprise/device/host_thread.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class scopes_of_ops : public grad_case {};

REPRISE_ON_EACH_DEVICE(scopes_of_ops);

TEST_P(scopes_of_ops, suspend_recording_and_backwards_may_come_outside) {
  for (const bool everywhere : {false, true}) {
    SCOPED_TRACE(everywhere ? "everywhere" : "on this thread");
    subject of{desk, op_kind::counted};
    std::optional<subject::call> inner;
    {
      std::optional<suspended> here;
      std::optional<suspended_everywhere> everybody;
      everywhere ? void(everybody.emplace()) : void(here.emplace());
      {
        const suspended nested;
        of.step(1);
      }
      inner = of.forward(2);
      EXPECT_EQ(inner->result.why->rule, "suspended");
    }
    of.expect_output(*inner);
    of.expect_gradients(*inner, of.backward(*inner, 2), 2);
    of.step(3);
    EXPECT_EQ(of.counts(),
              "forward_capture 1, backward_capture 1, forward suspended 2, backward suspended 2");
  }
}

TEST_P(scopes_of_ops, end_by_exceptions_too) {
  subject of{desk, op_kind::scaled};
  try {
    const suspended here;
    const suspended_everywhere everybody;
    const precision_scope rounded{{matrix_precision::tf32, cast_mode::bf16}};
    const region span{"span"};
    const state_left_alone leaves;
    throw error{"out of all of them"};
  } catch (const error&) {
  }
  EXPECT_FALSE(suspended::is_here());
  EXPECT_FALSE(state_left_alone::is_here());
  EXPECT_EQ(region::innermost(), nullptr);
  EXPECT_EQ(precision_now(), precision{});
  of.step(1);
  EXPECT_EQ(of.counts(), "forward_capture 1, backward_capture 1");
}

TEST_P(scopes_of_ops, make_the_backward_of_a_replay_eager_where_they_suspend_it) {
  subject of{desk, op_kind::rewinding};
  of.step(0);
  const subject::call made = of.forward(1);
  {
    const suspended here;
    of.expect_gradients(made, of.backward(made, 1), 1);
  }
  of.expect_gradients(made, of.backward(made, 2), 2);
  of.step(3);
  EXPECT_EQ(of.op().counts().eager_backward[static_cast<std::size_t>(eager_cause::suspended)], 1U);
}

TEST_P(scopes_of_ops, are_of_one_thread_unless_they_say_everywhere) {
  subject of{desk, op_kind::scaled};
  const suspended here;
  const precision_scope rounded{{matrix_precision::tf32, cast_mode::bf16}};
  const region span{"span"};
  bool elsewhere = true;
  bool in_region = true;
  precision theirs{matrix_precision::tf32, cast_mode::bf16};
  host_thread other{dev(), [&] {
                      elsewhere = suspended::is_here();
                      in_region = region::innermost() != nullptr;
                      theirs = precision_now();
                    }};
  other.join();
  EXPECT_FALSE(elsewhere);
  EXPECT_FALSE(in_region);
  EXPECT_EQ(theirs, precision{});
  const suspended_everywhere everybody;
  host_thread another{dev(), [&] { elsewhere = suspended::is_here(); }};
  another.join();
  EXPECT_TRUE(elsewhere);
}

// Forward and backward inside the graph of somebody else.
TEST_P(scopes_of_ops, of_another_capture_take_the_call_into_its_graph) {
  for (const bool open : {true, false}) {
    SCOPED_TRACE(open ? "open_capture" : "capture()");
    subject of{desk, op_kind::scaled};
    of.step(0);
    of.drop_gradients();
    const tensor<float> x = desk.made(numbers(1, 8));
    const tensor<float> dy = desk.made(numbers(2, 8));
    std::optional<forward_result> call;
    std::optional<grad_result> got;
    const auto both = [&] {
      call = of.op().forward(s(), {{of.inputs[0], x}});
      EXPECT_TRUE(has(message_of<usage_error>([&] {
                        of.op().backward(s(), call->ticket, {gradient_of(of.outputs[0], dy)});
                      }),
                      "a backward that trains parameters is called inside a capture"));
      got = of.op().backward(s(), call->ticket, {gradient_of(of.outputs[0], dy)},
                             {.parameters = false});
    };
    std::optional<graph> made;
    if (open) {
      open_capture capturing{s()};
      both();
      made = capturing.end();
    } else {
      made = capture(s(), [&](stream_ref) { both(); });
    }
    const executable launched = made->instantiate(s());
    for (int i = 0; i < 3; ++i) {
      const floats in = numbers(i + 3, 8);
      const floats back = numbers(i + 9, 8);
      upload(s(), in, x.get());
      upload(s(), back, dy.get());
      launched.launch(s());
      const floats& w = of.weight_values[0];
      EXPECT_BITS(desk.values_of((*call)[of.outputs[0]]), on_host::scaled(in, w, 1.0F));
      EXPECT_BITS(desk.values_of((*got)[of.inputs[0]]), on_host::scaled_dx(back, w, 1.0F));
      EXPECT_FALSE(of.weights[0].at.has_grad);
    }
    of.step(4);  // as ever
    EXPECT_EQ(of.counts(),
              "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
              "forward suspended 1, backward suspended 1");
  }
}

TEST_P(scopes_of_ops, of_another_capture_leave_a_backward_for_outside) {
  subject of{desk, op_kind::rewinding};
  const floats x = numbers(1, 8);
  const floats back = numbers(2, 8);
  const tensor<float> in = desk.made(x);
  std::optional<forward_result> call;
  const graph made = capture(s(), [&](stream_ref) {
    call = of.op().forward(s(), {{of.inputs[0], in}});
  });
  const executable launched = made.instantiate(s());
  launched.launch(s());
  EXPECT_BITS(desk.values_of((*call)[of.outputs[0]]), on_host::rewinding(x));
  const grad_result got =
      of.op().backward(s(), call->ticket, {gradient_of(of.outputs[0], desk.made(back))});
  EXPECT_BITS(desk.values_of(got[of.inputs[0]]), on_host::rewinding_dx(back, x));
  EXPECT_EQ(of.counts(), "forward suspended 1, backward suspended 1");
}

TEST_P(scopes_of_ops, of_another_capture_take_the_backward_of_a_forward_outside) {
  subject of{desk, op_kind::twofold};
  of.step(0);
  of.drop_gradients();
  const subject::call made = of.forward(1);
  std::optional<grad_result> got;
  const tensor<float> dy = desk.made(numbers(2, 8));
  const graph captured = capture(s(), [&](stream_ref) {
    got = of.op().backward(s(), made.result.ticket, {gradient_of(of.outputs[0], dy)},
                           {.parameters = false});
  });
  EXPECT_EQ(got->why->rule, "suspended");
  const executable launched = captured.instantiate(s());
  for (int i = 0; i < 2; ++i) {
    upload(s(), numbers(i + 101, 8), dy.get());  // as the backward of the values i + 1 has it
    launched.launch(s());
    of.expect_gradients(made, *got, i + 1);
  }
  of.drop_gradients();
  of.expect_gradients(made, of.backward(made, 3), 3);
  of.expect_state();
  of.step(4);
}

// Of another stream: it is in nobody's way.
TEST_P(scopes_of_ops, of_a_capture_elsewhere_leave_the_call_as_it_is) {
  subject of{desk, op_kind::scaled};
  const stream other{dev()};
  subject fresh{desk, op_kind::rewinding};
  const tensor<float> filled = desk.made(numbers(1, 8));
  const tensor<float> x = desk.made(numbers(2, 8));
  of.step(0);
  std::optional<graph> made;
  {
    open_capture capturing{other};
    fill(other, write<float>{filled.get()}, 2.0F);
    EXPECT_EQ(of.op().forward(s(), {{of.inputs[0], x}}).how, ran::replayed);
    EXPECT_EQ(fresh.op().forward(s(), {{fresh.inputs[0], x}}).how, ran::captured);
    made = capturing.end();
  }
  const executable launched = made->instantiate(other);
  launched.launch(other);
  order(other, s());
  EXPECT_BITS(desk.values_of(filled), floats(8, 2.0F));
  of.step(1);
  fresh.step(2);
}

TEST_P(scopes_of_ops, of_another_capture_refuse_what_each_replay_would_repeat) {
  subject draws{desk, op_kind::noisy};
  subject of{desk, op_kind::rewinding};
  const floats x = numbers(1, 8);
  const tensor<float> in = desk.made(x);
  const graph made = capture(s(), [&](stream_ref) {
    const std::string random = message_of<usage_error>([&] {
      draws.op().forward(s(), {{draws.inputs[0], in}});
    });
    EXPECT_TRUE(has(random, "op 'noisy': it is called inside a capture and draws random numbers"))
        << random;
    const std::string host = message_of<usage_error>(
        [&] { of.op().forward(s(), {operand{of.inputs[0].from_host(x)}}); });
    EXPECT_TRUE(has(host, "an operand lies in host memory")) << host;
  });
  draws.step(2);
  of.step(3);
}

// Random numbers and state count once, however often the span is run.
TEST_P(scopes_of_ops, checkpoint_a_span_that_runs_again_before_its_backward) {
  subject noise{desk, op_kind::noisy, {}, "noise"};
  subject state{desk, op_kind::counted};
  for (int step = 0; step < 4; ++step) {
    checkpoint noisy_span{"noisy span", {&noise.counter}};
    checkpoint span{"span"};
    std::optional<subject::call> first = noisy_span.forward([&] { return noise.forward(step); });
    std::optional<subject::call> second = span.forward([&] { return state.forward(step); });
    const floats dropped_out = desk.values_of(first->result[noise.outputs[0]]);
    noise.expect_output(*first);
    // The activations go.
    first->result = {};
    second->result = {};
    noise.expect_state();
    state.expect_state();
    noisy_span.recompute([&] {
      first->result = noise.op().forward(s(), noise.given(*first));
      return 0;
    });
    span.recompute([&] {
      second->result = state.op().forward(s(), state.given(*second));
      return 0;
    });
    EXPECT_BITS(desk.values_of(first->result[noise.outputs[0]]), dropped_out);
    state.expect_output(*second);
    state.expect_gradients(*second, state.backward(*second, step), step);
    noise.expect_gradients(*first, noise.backward(*first, step), step);
    noise.expect_state();
    state.expect_state();
  }
  const std::string all =
      "forward_capture 1, forward_replay 7, backward_capture 1, backward_replay 3";
  EXPECT_EQ(noise.counts(), all);
  EXPECT_EQ(state.counts(), all);
}

TEST_P(scopes_of_ops, checkpoint_leaves_state_alone_whichever_way_a_forward_takes) {
  for (const bool record : {true, false}) {
    SCOPED_TRACE(record ? "recorded" : "eager");
    subject of{desk, op_kind::counted, {.record = record}};
    checkpoint span{"span"};
    // The recompute is the first call that is recorded.
    subject::call made = span.forward([&] { return of.infer(1); });
    for (int i = 0; i < 2; ++i) {
      span.recompute([&] {
        made.result = of.op().forward(s(), of.given(made));
        return 0;
      });
      of.expect_state();
      of.expect_gradients(made, of.backward(made, i), i);
      of.expect_state();
    }
    span.recompute([&] {
      made.result = of.op().infer(s(), of.given(made));
      return 0;
    });
    of.expect_output(made);
    of.expect_state();
  }
}

TEST_P(scopes_of_ops, reset_between_steps_and_pending_backwards_keep_their_frames) {
  subject of{desk, op_kind::noisy};
  subject other{desk, op_kind::twofold};
  const subject::call pending = of.forward(1);
  other.step(1);
  graphed::reset();
  EXPECT_EQ(of.op().frames(), 0U);
  EXPECT_EQ(other.op().frames(), 0U);
  EXPECT_EQ(of.op().bytes(), 0U);
  of.step(2);
  of.expect_gradients(pending, of.backward(pending, 1), 1);
  of.expect_gradients(pending, of.backward(pending, 3), 3);
  of.step(4);
  other.step(5);
  EXPECT_EQ(of.counts(),
            "forward_capture 2, forward_replay 1, backward_capture 2, backward_replay 2, "
            "stale_replay 1");
  EXPECT_EQ(other.counts(), "forward_capture 2, backward_capture 2");
}

}  // namespace
}  // namespace reprise::test
