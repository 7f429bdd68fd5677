// The field's cases about which backward belongs to which forward: G8, G9, G10, G17 and G18.
#include <map>

#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class call_cases : public grad_case {};

REPRISE_ON_EACH_DEVICE(call_cases);

TEST_P(call_cases, G8_a_forward_without_backward_has_a_recording_of_its_own) {
  for (const op_kind kind : all_kinds) {
    SCOPED_TRACE(name_of(kind));
    subject of{desk, kind};
    const subject::call first = of.infer(1);
    EXPECT_EQ(first.result.how, ran::captured);
    const subject::call second = of.infer(2);
    EXPECT_EQ(second.result.how, ran::replayed);
    EXPECT_FALSE(second.result.ticket);
    of.expect_output(first);
    of.expect_output(second);
    // Where a gradient is needed that recording is not the one.
    const subject::call pending = of.forward(3);
    EXPECT_EQ(pending.result.how, ran::captured);
    of.expect_output(of.infer(4));
    const grad_result got = of.backward(pending, 3);
    of.expect_gradients(pending, got, 3);
    of.expect_state();
    EXPECT_EQ(of.counts(), "forward_capture 1, backward_capture 1, inference 3");
    const std::string refused = message_of<usage_error>([&] { (void)of.backward(second, 2); });
    EXPECT_TRUE(has(refused, "has no ticket")) << refused;
    of.expect_state();
  }
}

struct two_calls {
  std::string order;  // of forwards (F) and backwards (B)
  on_conflict policy;
  std::string counts;
};

const std::vector<two_calls>& in_flight() {
  const std::string eager =
      "forward_capture 1, backward_capture 1, forward hold 1, backward hold 1";
  const std::string replayed =
      "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1";
  const std::string two = "forward_capture 2, backward_capture 2";
  static const std::vector<two_calls> all{
      {"F1 F2 B1 B2", hold{}, eager},
      {"F1 F2 B2 B1", hold{}, eager},
      {"F1 B1 F2 B2", hold{}, replayed},
      {"F1 F2 B1 B2", recompute{}, replayed + ", stale_replay 2"},
      {"F1 F2 B2 B1", recompute{}, replayed + ", stale_replay 1"},
      {"F1 B1 F2 B2", recompute{}, replayed},
      {"F1 F2 B1 B2", slots{2}, two},
      {"F1 F2 B2 B1", slots{2}, two},
      {"F1 B1 F2 B2", slots{2}, replayed},
  };
  return all;
}

TEST_P(call_cases, G9_micro_batches_in_flight_keep_their_own_state) {
  for (const op_kind kind : all_kinds) {
    for (const two_calls& one : in_flight()) {
      SCOPED_TRACE(name_of(kind) + " " + text_of(one.policy) + " " + one.order);
      subject of{desk, kind, {.conflict = one.policy}};
      std::map<char, subject::call> calls;
      for (std::size_t i = 0; i < one.order.size(); i += 3) {
        const char which = one.order[i + 1];
        if (one.order[i] == 'F') {
          calls[which] = of.forward(which);
        } else {
          of.expect_gradients(calls[which], of.backward(calls[which], which), which);
        }
        of.expect_state();
      }
      for (const auto& [which, call] : calls) of.expect_output(call);
      EXPECT_EQ(of.counts(), one.counts);
    }
  }
}

TEST_P(call_cases, G9_a_ticket_of_another_op_is_refused_and_changes_nothing) {
  subject of{desk, op_kind::scaled, {}, {}, "mine"};
  subject other{desk, op_kind::scaled, {}, {}, "other"};
  const subject::call pending = of.forward(1);
  const subject::call foreign = other.forward(2);
  const tensor<float> dy = desk.made(numbers(3, 8));
  const std::string refused = message_of<usage_error>(
      [&] { of.op().backward(s(), foreign.result.ticket, {gradient_of(of.outputs[0], dy)}); });
  EXPECT_TRUE(has(refused, "op 'mine'")) << refused;
  EXPECT_TRUE(has(refused, "another op's forward")) << refused;
  of.expect_gradients(pending, of.backward(pending, 1), 1);
  other.expect_gradients(foreign, other.backward(foreign, 2), 2);
  of.expect_state();
  other.expect_state();
  EXPECT_EQ(of.counts(), "forward_capture 1, backward_capture 1");
}

// As many slots as the schedule needs: by design no backward is stale.
TEST_P(call_cases, G9_a_pipeline_with_the_slots_of_its_schedule_replays_no_forward_twice) {
  for (const int stage : {0, 1, 2}) {
    SCOPED_TRACE("stage " + std::to_string(stage));
    constexpr int depth = 3;
    constexpr int batches = 6;
    subject of{desk, op_kind::scaled, {.conflict = slots_for_pipeline(depth, stage, batches)}};
    for (int step = 0; step < 3; ++step) {
      std::vector<subject::call> pending;
      const auto backward = [&](int i) {
        const subject::call& call = pending[static_cast<std::size_t>(i)];
        of.expect_gradients(call, of.backward(call, i), i);
      };
      const int ahead = depth - stage - 1;
      for (int i = 0; i < batches + ahead; ++i) {
        if (i < batches) pending.push_back(of.forward(i));
        if (i >= ahead) backward(i - ahead);
      }
      of.expect_state();
      of.drop_gradients();
    }
    const grad_counts counts = of.op().counts();
    EXPECT_EQ(counts.stale_replay, 0U) << of.counts();
    EXPECT_EQ(counts.eager_forwards() + counts.eager_backwards(), 0U) << of.counts();
  }
}

constexpr precision full{};
constexpr precision tf32{matrix_precision::tf32, cast_mode::none};
constexpr precision rounded{matrix_precision::full, cast_mode::bf16};

TEST_P(call_cases, G10_the_precision_in_force_is_part_of_the_key) {
  for (const precision& other : {tf32, rounded}) {
    subject of{desk, op_kind::scaled};
    of.step(1);
    {
      const precision_scope now{other};
      of.step(2);
    }
    of.step(3);
    EXPECT_EQ(of.counts(),
              "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
              "forward key 1, backward key 1");
    subject both{desk, op_kind::scaled, {.keys = 2}};
    for (int i = 0; i < 3; ++i) {
      both.step(i);
      const precision_scope now{other};
      both.step(i);
    }
    EXPECT_EQ(both.counts(),
              "forward_capture 2, forward_replay 4, backward_capture 2, backward_replay 4");
  }
}

TEST_P(call_cases, G10_a_backward_has_the_casts_of_its_forward_and_the_products_of_now) {
  for (const bool record : {true, false}) {
    SCOPED_TRACE(record ? "recorded" : "eager");
    subject of{desk, op_kind::scaled, {.record = record}};
    const auto forward = [&](int values) {
      const precision_scope now{rounded};
      return of.forward(values);
    };
    const auto backward = [&](const subject::call& call, int values, const precision& in_force) {
      const precision_scope now{in_force};
      of.expect_gradients(call, of.backward(call, values), values);
    };
    for (int i = 0; i < 2; ++i) {
      const subject::call made = forward(i);
      of.expect_output(made);
      backward(made, i, full);  // casts are those of the forward
    }
    const subject::call made = forward(3);
    backward(made, 3, tf32);  // products are those of now
    backward(forward(4), 4, full);
    of.expect_state();
    EXPECT_EQ(of.counts(), record ? "forward_capture 1, forward_replay 3, backward_capture 1, "
                                    "backward_replay 2, backward precision 1"
                                  : "forward suspended 4, backward suspended 4");
  }
}

TEST_P(call_cases, G10_the_products_of_the_first_backward_are_those_of_its_recording) {
  subject of{desk, op_kind::scaled};
  for (const precision& in_force : {tf32, full, tf32}) {
    const subject::call made = of.forward(1);
    const precision_scope now{in_force};
    of.expect_gradients(made, of.backward(made, 1), 1);
  }
  of.expect_state();
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 1, "
            "backward precision 1");
}

TEST_P(call_cases, G10_casts_are_made_anew_in_each_replay) {
  subject of{desk, op_kind::scaled};
  const precision_scope now{rounded};
  for (int i = 0; i < 4; ++i) {
    of.step(i);
    of.descend(0.01F);
    of.drop_gradients();
  }
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 3, backward_capture 1, backward_replay 3");
}

TEST_P(call_cases, G17_a_second_backward_gives_the_gradient_again) {
  for (const op_kind kind : all_kinds) {
    for (const on_conflict& policy : std::array<on_conflict, 2>{hold{}, recompute{}}) {
      SCOPED_TRACE(name_of(kind) + " " + text_of(policy));
      subject of{desk, kind, {.conflict = policy}};
      const auto backward = [&](const subject::call& call, int values) {
        of.expect_gradients(call, of.backward(call, values), values);
        of.expect_state();
      };
      const subject::call first = of.forward(1);
      backward(first, 1);
      backward(first, 2);
      EXPECT_EQ(of.counts(),
                "forward_capture 1, backward_capture 1, backward_replay 1, stale_replay 1");
      const subject::call second = of.forward(3);
      backward(first, 4);  // and takes the frame
      backward(second, 5);
      EXPECT_EQ(of.counts(),
                "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 3, "
                "stale_replay 3");
    }
  }
}

TEST_P(call_cases, G17_a_second_backward_of_an_eager_call_gives_the_gradient_again) {
  for (const op_kind kind : all_kinds) {
    SCOPED_TRACE(name_of(kind));
    subject of{desk, kind, {.record = false}};
    const subject::call made = of.forward(1);
    for (int i = 0; i < 2; ++i) {
      of.expect_gradients(made, of.backward(made, i), i);
      of.expect_state();
    }
    EXPECT_EQ(of.counts(), "forward suspended 1, backward suspended 2");
  }
}

// Five layers of several kinds in one pool.
class layers {
 public:
  explicit layers(grad_desk& desk) {
    int i = 0;
    for (const op_kind kind : {op_kind::scaled, op_kind::noisy, op_kind::counted,
                               op_kind::rewinding, op_kind::remembering}) {
      all.push_back(std::make_unique<subject>(desk, kind, graphed_options{.conflict = recompute{}},
                                              std::string{}, "layer " + std::to_string(++i)));
    }
  }
  subject& operator[](int number) const { return *all[static_cast<std::size_t>(number - 1)]; }

  std::vector<std::unique_ptr<subject>> all;
};

TEST_P(call_cases, G18_layers_that_replay_in_order_are_never_stale) {
  const layers net{desk};
  for (int step = 0; step < 3; ++step) {
    std::vector<subject::call> calls;
    for (int i = 1; i <= 5; ++i) calls.push_back(net[i].forward(step + i));
    for (int i = 5; i >= 1; --i) {
      const subject::call& call = calls[static_cast<std::size_t>(i - 1)];
      net[i].expect_output(call);
      net[i].expect_gradients(call, net[i].backward(call, i), i);
      net[i].expect_state();
    }
  }
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(net[i].counts(),
              "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 2");
  }
}

TEST_P(call_cases, G18_an_early_layer_that_replays_makes_the_later_ones_stale) {
  const layers net{desk};
  std::vector<subject::call> calls;
  for (int i = 1; i <= 5; ++i) calls.push_back(net[i].forward(i));
  const subject::call again = net[2].forward(9);
  const auto backward = [&](int i, const subject::call& call) {
    net[i].expect_gradients(call, net[i].backward(call, i), i);
    net[i].expect_state();
  };
  for (int i = 5; i >= 1; --i) {
    if (i == 2) backward(2, again);
    backward(i, calls[static_cast<std::size_t>(i - 1)]);
  }
  EXPECT_EQ(net[1].counts(), "forward_capture 1, backward_capture 1");
  EXPECT_EQ(net[2].counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
            "stale_replay 1")
      << "its own first call, and not by the pool";
  for (int i = 3; i <= 5; ++i) {
    EXPECT_EQ(net[i].counts(),
              "forward_capture 1, backward_capture 1, stale_replay 1, stale_by_pool 1");
  }
}

// Whoever is captured behind the first backward has memory that no other layer writes.
TEST_P(call_cases, G18_a_layer_captured_behind_the_first_backward_is_never_stale_by_the_pool) {
  subject early{desk, op_kind::scaled, {.conflict = recompute{}}, {}, "early"};
  subject late{desk, op_kind::rewinding, {.conflict = recompute{}}, {}, "late"};
  early.step(1);
  const subject::call pending = late.forward(2);
  early.step(3);
  late.expect_gradients(pending, late.backward(pending, 2), 2);
  EXPECT_EQ(late.counts(), "forward_capture 1, backward_capture 1");
}

}  // namespace
}  // namespace reprise::test
