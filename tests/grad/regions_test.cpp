// Regions: which ops share a frame, and which have one of their own.
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class regions_of_ops : public grad_case {};

REPRISE_ON_EACH_DEVICE(regions_of_ops);

// Ops of one work.
struct block_of {
  explicit block_of(grad_desk& desk, const std::string& name, const graphed_options& options = {})
      : op{desk, op_kind::rewinding, options, "rewinding block", name} {}
  subject op;
};

TEST_P(regions_of_ops, share_a_frame_with_other_ops_of_their_work) {
  block_of a{desk, "a"};
  block_of b{desk, "b"};
  for (int step = 0; step < 3; ++step) {
    const region first{"first"};
    a.op.step(step);
    {
      const region second{"second"};  // the innermost counts
      b.op.step(step + 5);
    }
  }
  EXPECT_EQ(a.op.counts(),
            "forward_capture 1, forward_replay 2, backward_capture 1, backward_replay 2");
  EXPECT_EQ(b.op.counts(), "forward_shared 1, forward_replay 2, backward_replay 3");
  EXPECT_EQ(a.op.op().frames(), 1U);
  EXPECT_EQ(b.op.op().frames(), 1U);
}

TEST_P(regions_of_ops, give_each_op_within_one_a_frame_that_it_keeps) {
  block_of a{desk, "a"};
  block_of b{desk, "b"};
  const auto step = [&](block_of& first, block_of& second, int values) {
    const region span{"span"};
    const subject::call one = first.op.forward(values);
    const subject::call two = second.op.forward(values + 1);
    second.op.expect_gradients(two, second.op.backward(two, values), values);
    first.op.expect_gradients(one, first.op.backward(one, values), values);
  };
  step(a, b, 1);
  step(b, a, 3);  // the other way round: nobody takes the other's
  step(a, b, 5);
  for (block_of* one : {&a, &b}) {
    const grad_counts counts = one->op.op().counts();
    EXPECT_EQ(counts.forward_capture, 1U);
    EXPECT_EQ(counts.forward_replay, 2U);
    EXPECT_EQ(counts.forward_shared, 0U);
    EXPECT_EQ(counts.backwards(), 3U);
    EXPECT_EQ(counts.eager_backwards(), 0U);
  }
  // In order it is as it would be without regions.
  EXPECT_EQ(a.op.op().counts().stale_by_pool + b.op.op().counts().stale_by_pool, 1U)
      << "b, whose frame is the second, ran before a once";
}

TEST_P(regions_of_ops, leave_an_op_outside_its_own_frame) {
  block_of a{desk, "a"};
  block_of b{desk, "b"};
  {
    const region span{"span"};
    a.op.step(1);
  }
  b.op.step(2);
  a.op.step(3);
  EXPECT_EQ(b.op.counts(), "forward_capture 1, backward_capture 1");
  EXPECT_EQ(a.op.counts(), "forward_capture 2, backward_capture 2") << "the same key, twice";
}

TEST_P(regions_of_ops, let_a_pending_backward_of_another_region_recompute) {
  for (const on_conflict& policy : std::array<on_conflict, 2>{hold{}, recompute{}}) {
    SCOPED_TRACE(text_of(policy));
    block_of a{desk, "a", {.conflict = policy}};
    block_of b{desk, "b", {.conflict = policy}};
    std::optional<subject::call> one;
    std::optional<subject::call> two;
    {
      const region first{"first"};
      one = a.op.forward(1);
    }
    {
      const region second{"second"};
      two = b.op.forward(2);
    }
    a.op.expect_gradients(*one, a.op.backward(*one, 1), 1);
    b.op.expect_gradients(*two, b.op.backward(*two, 2), 2);
    if (std::holds_alternative<hold>(policy)) {
      EXPECT_EQ(a.op.counts(), "forward_capture 1, backward_capture 1");
      EXPECT_EQ(b.op.counts(), "forward hold 1, backward hold 1");
    } else {
      EXPECT_EQ(a.op.counts(), "forward_capture 1, backward_capture 1, stale_replay 1");
      EXPECT_EQ(b.op.counts(), "forward_shared 1, backward_replay 1, stale_replay 1");
    }
  }
}

TEST_P(regions_of_ops, refuse_the_same_words_for_other_work) {
  subject a{desk, op_kind::rewinding, {}, "one work", "a"};
  subject b{desk, op_kind::noisy, {}, "one work", "b"};
  const region span{"span"};
  a.step(1);
  const std::string refused = message_of<usage_error>([&] { (void)b.forward(2); });
  EXPECT_TRUE(has(refused, "the same work 'one work")) << refused;
  EXPECT_TRUE(has(refused, "its counter")) << refused;
  a.step(3);
}

// What is lent lies in the frame's own memory, which no other op's backward may write.
TEST_P(regions_of_ops, share_no_frame_where_gradients_are_returned_otherwise) {
  block_of cloned{desk, "cloned"};
  block_of moved{desk, "moved", {.returned = gradients::moved}};
  block_of moved_too{desk, "moved too", {.returned = gradients::moved}};
  for (int step = 0; step < 3; ++step) {
    std::vector<subject::call> calls;
    std::vector<grad_result> got;
    for (block_of* one : {&cloned, &moved, &moved_too}) {
      const region span{"span"};
      calls.push_back(one->op.forward(step));
      got.push_back(one->op.backward(calls.back(), step));
    }
    cloned.op.expect_gradients(calls[0], got[0], step);
    moved.op.expect_gradients(calls[1], got[1], step);
    moved_too.op.expect_gradients(calls[2], got[2], step);
  }
  EXPECT_EQ(cloned.op.op().counts().forward_capture, 1U);
  EXPECT_EQ(moved.op.op().counts().forward_capture, 1U);
  EXPECT_EQ(moved_too.op.op().counts().forward_shared, 1U);
}

TEST_P(regions_of_ops, are_forgotten_by_a_reset_and_a_pending_backward_keeps_its_frame) {
  block_of a{desk, "a"};
  block_of b{desk, "b"};
  const region span{"span"};
  const subject::call pending = a.op.forward(1);
  graphed::reset();
  const subject::call next = b.op.forward(2);
  EXPECT_EQ(next.result.how, ran::captured);
  a.op.expect_gradients(pending, a.op.backward(pending, 1), 1);
  b.op.expect_gradients(next, b.op.backward(next, 2), 2);
  EXPECT_EQ(a.op.counts(), "forward_capture 1, backward_capture 1");
  EXPECT_EQ(b.op.counts(), "forward_capture 1, backward_capture 1");
}

TEST(region, gives_each_op_the_lowest_slot_that_is_free_or_the_one_it_kept) {
  region span{"span"};
  constexpr std::uint64_t group = 1;
  constexpr std::uint64_t other = 2;
  int a = 0;
  int b = 0;
  int c = 0;
  EXPECT_EQ(span.label(), "span");
  EXPECT_EQ(span.slot_for(group, &a, std::nullopt), 0U);
  EXPECT_EQ(span.slot_for(group, &b, std::nullopt), 1U);
  EXPECT_EQ(span.slot_for(other, &c, std::nullopt), 0U);
  EXPECT_EQ(span.slot_for(group, &a, 0U), 0U) << "marked used again, and its own";
  EXPECT_EQ(span.slot_for(group, &c, 1U), 2U) << "what it kept is taken here";
  EXPECT_EQ(span.slot_for(group, &b, 5U), 5U) << "kept from a fuller region";
  const region inner{"inner"};
  EXPECT_EQ(region::innermost(), &inner);
}

}  // namespace
}  // namespace reprise::test
