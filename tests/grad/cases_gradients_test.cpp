// The field's cases about who owns a gradient: G1 to G4 and G7.
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class gradient_cases : public grad_case {};

REPRISE_ON_EACH_DEVICE(gradient_cases);

constexpr std::array both_ways{gradients::cloned, gradients::moved};
const std::array<on_conflict, 3> policies{hold{}, recompute{}, slots{4}};

// Four micro-batches, one after the other or all forwards first.
void accumulate(grad_desk& desk, op_kind kind, const graphed_options& options, bool in_turn,
                bool present) {
  SCOPED_TRACE(name_of(kind) + " " + text_of(options) + (in_turn ? " in turn" : " at once") +
               (present ? " into zeros" : " into nothing"));
  subject of{desk, kind, options};
  for (int window = 0; window < 3; ++window) {
    of.drop_gradients();
    if (present) of.zero_gradients();
    std::vector<subject::call> pending;
    std::vector<grad_result> got;
    for (int i = 0; i < 4; ++i) {
      pending.push_back(of.forward(10 * window + i));
      if (in_turn) got.push_back(of.backward(pending.back(), i));
    }
    for (int i = 0; i < 4 && !in_turn; ++i) {
      got.push_back(of.backward(pending[static_cast<std::size_t>(i)], i));
    }
    of.expect_state();
    // Nothing that came later has touched what was handed out.
    for (int i = 0; i < 4; ++i) {
      const auto at = static_cast<std::size_t>(i);
      of.expect_output(pending[at]);
      of.expect_gradients(pending[at], got[at], i);
    }
  }
}

TEST_P(gradient_cases, G1_accumulated_gradients_are_the_sum_of_all_micro_batches) {
  for (const op_kind kind : {op_kind::scaled, op_kind::twofold}) {
    for (const on_conflict& policy : policies) {
      for (const gradients returned : both_ways) {
        for (const bool in_turn : {true, false}) {
          for (const bool present : {true, false}) {
            accumulate(desk, kind, {.conflict = policy, .returned = returned}, in_turn, present);
          }
        }
      }
    }
  }
}

TEST_P(gradient_cases, G1_four_quarters_make_one) {
  subject of{desk, op_kind::scaled};
  const tensor<float> x = desk.made({0.25F, 0.25F, 0.25F, 0.25F});
  const tensor<float> one = desk.made({1, 1, 1, 1});
  for (int i = 0; i < 4; ++i) {
    const forward_result call = of.op().forward(s(), {{of.inputs[0], x}});
    of.op().backward(s(), call.ticket, {gradient_of(of.outputs[0], one)});
  }
  EXPECT_BITS(desk.values_of(of.weights[0].gradient.all()), floats(row, 1.0F));
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 3, backward_capture 1, backward_replay 3");
}

// Forward, clear, backward: the gradients of the step before are read behind the next forward.
TEST_P(gradient_cases, G2_gradients_live_over_the_next_forward) {
  for (const gradients returned : both_ways) {
    SCOPED_TRACE(returned == gradients::moved ? "moved" : "cloned");
    subject of{desk, op_kind::scaled, {.returned = returned}};
    std::optional<subject::call> before;
    std::optional<grad_result> kept;
    for (int i = 0; i < 5; ++i) {
      const subject::call now = of.forward(i);
      of.expect_output(now);
      of.expect_state();  // of the step before
      if (before) of.expect_gradients(*before, *kept, i - 1);
      of.drop_gradients();
      grad_result got = of.backward(now, i);
      // The backward has run too, and what is held is as it was.
      if (before) of.expect_gradients(*before, *kept, i - 1);
      before = now;
      kept = std::move(got);
    }
    EXPECT_EQ(of.counts(),
              "forward_capture 1, forward_replay 4, backward_capture 1, backward_replay 4");
  }
}

// One backward per update, gradients released in time.
TEST_P(gradient_cases, G3_gradients_that_go_in_time_are_never_copied) {
  subject of{desk, op_kind::twofold, {.returned = gradients::moved}};
  for (int i = 0; i < 6; ++i) {
    const subject::call made = of.forward(i);
    (void)of.backward(made, i);
    EXPECT_EQ(of.calls(seam_call::launch), i == 0 ? 0U : 1U);
    if (i > 0) {
      EXPECT_EQ(of.calls(seam_call::copy), 0U) << "backward " << i;
    }
    of.expect_state();
    of.descend(0.01F);
    of.drop_gradients();
  }
}

TEST_P(gradient_cases, G3_a_gradient_that_is_held_is_copied_once) {
  subject of{desk, op_kind::joined, {.returned = gradients::moved}};
  of.step(1);
  std::vector<subject::call> made;
  std::vector<grad_result> held;
  for (int i = 0; i < 4; ++i) {
    made.push_back(of.forward(i));
    held.push_back(of.backward(made.back(), i));
    EXPECT_EQ(of.calls(seam_call::copy), i == 0 ? 0U : 2U) << "both of the one before, once";
  }
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<std::size_t>(i);
    of.expect_gradients(made[at], held[at], i);
  }
}

TEST_P(gradient_cases, G3_a_clone_is_left_by_a_node_and_parameters_take_none) {
  subject of{desk, op_kind::twofold};
  of.step(1);
  of.step(2);
  (void)of.backward(of.forward(3), 3);
  EXPECT_EQ(of.calls(seam_call::copy), 0U);
  (void)of.backward(of.forward(4), 4, wanted::parameters_only());
  EXPECT_EQ(of.calls(seam_call::copy), 0U);
  EXPECT_EQ(of.calls(seam_call::launch), 1U);
  of.expect_state();
}

TEST_P(gradient_cases, G4_the_optimizer_reads_the_buffer_that_the_backward_fills) {
  subject of{desk, op_kind::twofold};
  std::vector<const std::byte*> before;
  for (const trained_weight& one : of.weights) {
    before.push_back(one.at.value.data);
    before.push_back(one.at.grad.data);
  }
  for (int i = 0; i < 5; ++i) {
    of.step(i);
    of.descend(0.01F);  // behind the first replay as behind any other
    of.drop_gradients();
    for (std::size_t w = 0; w < of.weights.size(); ++w) {
      EXPECT_BITS(desk.values_of(of.weights[w].value.all()), of.weight_values[w]);
      EXPECT_EQ(of.weights[w].at.value.data, before[2 * w]);
      EXPECT_EQ(of.weights[w].at.grad.data, before[2 * w + 1]);
      EXPECT_EQ(of.weights[w].at.value.data,
                reinterpret_cast<const std::byte*>(of.weights[w].value.all().data()));
    }
  }
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 4, backward_capture 1, backward_replay 4");
}

// All that a call registers anywhere is the hold of a gradient that is handed out where it lies.
TEST_P(gradient_cases, G7_holds_of_gradients_do_not_pile_up) {
  subject of{desk, op_kind::rewinding, {.returned = gradients::moved}};
  of.step(0);
  std::optional<subject::call> before;
  std::optional<grad_result> kept;
  for (int i = 1; i <= 10; ++i) {
    const subject::call now = of.forward(i);
    const grad_result got = of.backward(now, i);
    EXPECT_EQ(of.calls(seam_call::copy), i == 1 ? 0U : 1U) << "of the step before, and no other";
    if (before) of.expect_gradients(*before, *kept, i - 1);
    of.expect_gradients(now, got, i);
    before = now;
    kept = got;
  }
  kept.reset();
  (void)of.backward(of.forward(11), 11);
  EXPECT_EQ(of.calls(seam_call::copy), 0U) << "nothing is held any more";
}

}  // namespace
}  // namespace reprise::test
