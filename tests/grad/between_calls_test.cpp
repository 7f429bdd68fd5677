// What is asked of an op between its calls: to forget a backward that will not come, to move what
// it lent, to wait for its recordings.
#include <functional>

#include "reprise/device/faulty.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class between_calls : public grad_case {};

REPRISE_ON_EACH_DEVICE(between_calls);

TEST_P(between_calls, a_backward_that_is_forgotten_holds_no_frame) {
  subject of{desk, op_kind::scaled};
  of.step(0);
  const subject::call lost = of.forward(1);
  const subject::call held_up = of.forward(2);
  EXPECT_EQ(held_up.result.how, ran::eager);
  of.op().forget(lost.result.ticket);
  const subject::call next = of.forward(3);
  EXPECT_EQ(next.result.how, ran::replayed);
  of.expect_output(next);
  of.expect_gradients(next, of.backward(next, 3), 3);
  of.expect_gradients(held_up, of.backward(held_up, 2), 2);
  of.expect_state();
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 1, forward "
            "hold 1, backward hold 1");
}

TEST_P(between_calls, a_forgotten_backward_that_comes_all_the_same_is_exact) {
  for (const op_kind kind : all_kinds) {
    SCOPED_TRACE(name_of(kind));
    subject of{desk, kind};
    of.step(0);
    const subject::call late = of.forward(1);
    of.op().forget(late.result.ticket);
    const subject::call next = of.forward(2);
    EXPECT_EQ(next.result.how, ran::replayed);
    // Each runs its forward again, since the other has had the frame.
    of.expect_gradients(late, of.backward(late, 1), 1);
    of.expect_gradients(next, of.backward(next, 2), 2);
    of.expect_state();
    EXPECT_EQ(of.op().counts().stale_replay, 2U);
    of.step(3);
  }
}

TEST_P(between_calls, a_forgotten_backward_that_nothing_came_before_needs_no_second_forward) {
  subject of{desk, op_kind::twofold};
  of.step(0);
  const subject::call late = of.forward(1);
  of.op().forget(late.result.ticket);
  of.expect_gradients(late, of.backward(late, 1), 1);
  of.expect_state();
  EXPECT_EQ(of.op().counts().stale_replay, 0U);
}

TEST_P(between_calls, nobody_forgets_for_another_op) {
  subject of{desk, op_kind::scaled};
  subject other{desk, op_kind::twofold};
  const subject::call call = of.forward(1);
  EXPECT_EQ(message_of<usage_error>([&] { other.op().forget(call.result.ticket); }),
            "op 'twofold': the ticket is of another op's forward; give it to the op that issued "
            "it");
  EXPECT_EQ(message_of<usage_error>([&] { other.op().forget({}); }),
            "op 'twofold': the backward has no ticket; give that of its forward");
  of.expect_gradients(call, of.backward(call, 1), 1);
}

TEST_P(between_calls, an_eager_forward_is_forgotten_too_and_its_backward_is_exact) {
  subject of{desk, op_kind::noisy, {.record = false}};
  const subject::call call = of.forward(1);
  of.op().forget(call.result.ticket);
  of.expect_gradients(call, of.backward(call, 1), 1);
  of.expect_state();
}

TEST_P(between_calls, a_gradient_that_was_lent_is_moved_when_asked_and_keeps_its_bits) {
  subject of{desk, op_kind::rewinding, {.returned = gradients::moved}};
  of.step(0);
  const subject::call first = of.forward(1);
  const grad_result got = of.backward(first, 1);
  const float* const lent = got[of.inputs[0]].get().data();
  {
    const calls_since before{*desk.calls};
    of.op().move_live_gradients(s());
    EXPECT_EQ(before[seam_call::copy], 1U);
    of.op().move_live_gradients(s());
    EXPECT_EQ(before[seam_call::copy], 1U) << "once";
  }
  EXPECT_NE(got[of.inputs[0]].get().data(), lent);
  of.expect_gradients(first, got, 1);
  const subject::call second = of.forward(2);
  const grad_result next = of.backward(second, 2);
  EXPECT_EQ(next[of.inputs[0]].get().data(), lent) << "which is the recording's again";
  of.expect_gradients(second, next, 2);
  of.expect_gradients(first, got, 1);
}

TEST_P(between_calls, moving_calls_no_device_where_nothing_was_lent) {
  for (const gradients returned : {gradients::cloned, gradients::moved}) {
    subject of{desk, op_kind::rewinding, {.returned = returned}};
    const auto asked = [&] {
      const calls_since before{*desk.calls};
      of.op().move_live_gradients(s());
      of.op().drain();
      return before.all();
    };
    EXPECT_EQ(asked(), 0U) << "before the first call";
    of.step(0);
    of.step(1);
    const calls_since before{*desk.calls};
    of.op().move_live_gradients(s());
    EXPECT_EQ(before.all(), 0U) << "nothing is alive";
  }
}

TEST_P(between_calls, moving_follows_the_stream_that_asks) {
  const stream side{dev()};
  subject of{desk, op_kind::rewinding, {.returned = gradients::moved}};
  of.step(0);
  const subject::call first = of.forward(1);
  const grad_result got = of.backward(first, 1);
  of.op().move_live_gradients(side);
  order(side, s());
  of.expect_gradients(first, got, 1);
  const subject::call second = of.forward(2);
  of.expect_gradients(second, of.backward(second, 2), 2);
  of.expect_gradients(first, got, 1);
}

TEST_P(between_calls, draining_waits_for_what_was_recorded_and_tells_its_failure) {
  const auto plan = std::make_shared<fault_plan>();
  grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
  subject of{at, op_kind::scaled};
  of.step(0);
  of.step(1);
  of.op().drain();
  plan->fail_call(seam_call::synchronize, 1);
  try {
    of.op().drain();
    ADD_FAILURE() << "it swallowed the failure";
  } catch (const error& failed) {
    EXPECT_TRUE(has(failed.what(), "injected fault")) << failed.what();
  }
  plan->fail_call(0);
  of.op().drain();
  of.step(3);
}

}  // namespace
}  // namespace reprise::test
