// States that a call returns: copied when they are first read, and refused when that comes too
// late.
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class returned_states : public grad_case {
 protected:
  using state = replayed_state<float>;

  state state_of(const subject& of, const subject::call& made) const {
    return made.result.state(of.outputs[1]);
  }
  void expect_memory(state& there, const subject::call& made) {
    EXPECT_BITS(desk.values_of(there.read(s())), on_host::remembering(made.x).second);
  }
  void expect_gone(state& there, std::string_view why) {
    const std::string refused = message_of<stale_error>([&] { (void)there.read(s()); });
    EXPECT_TRUE(has(refused, "the state 'memory'")) << refused;
    EXPECT_TRUE(has(refused, why)) << refused;
    EXPECT_TRUE(has(refused, "read it right behind its forward")) << refused;
    EXPECT_FALSE(there.was_read());
  }
};

REPRISE_ON_EACH_DEVICE(returned_states);

TEST_P(returned_states, are_copied_by_their_first_read_and_kept) {
  subject of{desk, op_kind::remembering};
  for (int i = 0; i < 3; ++i) {
    const subject::call made = of.forward(i);
    state there = state_of(of, made);
    EXPECT_FALSE(there.was_read());
    const calls_since before{*desk.calls};
    const tensor<float> first = there.read(s());
    EXPECT_EQ(before[seam_call::copy], 1U);
    EXPECT_TRUE(there.was_read());
    EXPECT_EQ(there.read(s()).get().data(), first.get().data());
    EXPECT_EQ(before[seam_call::copy], 1U) << "once";
    of.expect_gradients(made, of.backward(made, i), i);
    (void)of.forward(i + 5);
    expect_memory(there, made);
    of.op().reset();
    expect_memory(there, made);
  }
}

TEST_P(returned_states, that_nobody_reads_are_never_copied) {
  subject of{desk, op_kind::remembering};
  of.step(0);
  const subject::call made = of.forward(1);
  const state there = state_of(of, made);
  EXPECT_EQ(of.calls(), "launch 1");
}

TEST_P(returned_states, are_gone_behind_a_later_forward) {
  subject of{desk, op_kind::remembering, {.conflict = recompute{}}};
  const subject::call made = of.forward(1);
  state there = state_of(of, made);
  (void)of.forward(2);
  expect_gone(there, "a later forward may have written it");
}

TEST_P(returned_states, are_gone_behind_a_forward_that_may_write_over_them) {
  subject early{desk, op_kind::scaled, {.conflict = recompute{}}, {}, "early"};
  subject of{desk, op_kind::remembering};
  (void)early.forward(1);
  const subject::call made = of.forward(2);
  state there = state_of(of, made);
  (void)early.forward(3);
  expect_gone(there, "a later forward may have written it");
}

TEST_P(returned_states, are_gone_behind_their_own_backward) {
  subject of{desk, op_kind::remembering};
  for (int i = 0; i < 2; ++i) {
    const subject::call made = of.forward(i);
    state there = state_of(of, made);
    (void)of.backward(made, i);
    expect_gone(there, "a backward has used it up");
  }
}

TEST_P(returned_states, are_gone_with_their_frame) {
  subject of{desk, op_kind::remembering};
  state there;
  {
    const subject::call made = of.forward(1);
    there = state_of(of, made);
  }
  graphed::reset();
  expect_gone(there, "its memory was given back");
}

TEST_P(returned_states, live_over_a_reset_while_their_backward_is_owed) {
  subject of{desk, op_kind::remembering};
  const subject::call made = of.forward(1);
  state there = state_of(of, made);
  graphed::reset();
  (void)of.forward(2);
  expect_memory(there, made);
  of.expect_gradients(made, of.backward(made, 1), 1);
}

TEST_P(returned_states, of_eager_calls_are_there_already) {
  for (const bool infers : {false, true}) {
    subject of{desk, op_kind::remembering, {.record = infers}};
    const subject::call made = infers ? of.infer(1) : of.forward(1);
    state there = state_of(of, made);
    if (infers) {
      (void)of.infer(2);
    } else {
      (void)of.backward(made, 1);
      (void)of.forward(2);
    }
    expect_memory(there, made);
  }
}

TEST_P(returned_states, are_assigned_and_updated_without_being_read) {
  subject of{desk, op_kind::remembering, {.conflict = recompute{}}};
  const subject::call first = of.forward(1);
  state bank = state_of(of, first);
  EXPECT_EQ(bank.length(), 0);
  const subject::call second = of.forward(2);  // the first is gone now
  const calls_since before{*desk.calls};
  bank.update(state_of(of, second), 7);
  EXPECT_EQ(bank.length(), 7);
  const subject::call third = of.forward(3);
  bank.update(state_of(of, third), 5);
  EXPECT_EQ(bank.length(), 12);
  EXPECT_FALSE(bank.was_read());
  expect_memory(bank, third);
  EXPECT_EQ(bank.length(), 12);
  const floats other = numbers(9, 8);
  bank.assign(desk.made(other), 2);
  EXPECT_EQ(bank.length(), 2);
  EXPECT_BITS(desk.values_of(bank.read(s())), other);
  bank.assign(state{desk.made(numbers(8, 8)), 4});
  EXPECT_EQ(bank.length(), 4);
  EXPECT_BITS(desk.values_of(bank.read(s())), numbers(8, 8));
}

TEST_P(returned_states, are_read_in_the_order_of_another_stream_too) {
  subject of{desk, op_kind::remembering, {.conflict = recompute{}}};
  const stream other{dev()};
  for (int i = 0; i < 4; ++i) {
    const subject::call made = of.forward(i);
    state there = state_of(of, made);
    const tensor<float> copied = there.read(other);
    (void)of.forward(i + 1);  // writes the frame behind the read
    order(other, s());
    EXPECT_BITS(desk.values_of(copied), on_host::remembering(made.x).second);
  }
}

TEST_P(returned_states, are_asked_for_as_states_and_outputs_as_outputs) {
  subject of{desk, op_kind::remembering};
  const subject::call made = of.forward(1);
  const std::string no_state =
      message_of<usage_error>([&] { (void)made.result.state(of.outputs[0]); });
  EXPECT_TRUE(has(no_state, "is no state")) << no_state;
  const std::string no_output = message_of<usage_error>([&] { (void)made.result[of.outputs[1]]; });
  EXPECT_TRUE(has(no_output, "forward_result::state")) << no_output;
}

}  // namespace
}  // namespace reprise::test
