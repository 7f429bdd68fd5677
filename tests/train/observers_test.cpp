// Observers of graphed ops: each mark of a call reaches each of them once, whichever way the call
// runs; while there is one, nothing is replayed.
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class observers_of_ops : public training_case {
 protected:
  using names = std::vector<std::string>;

  operand x(unsigned seed) {
    kept = desk.made(numbers(2 * model_of::features, seed), {2, model_of::features});
    return {op.op().x, kept};
  }
  forward_result forward(unsigned seed) { return op.forward(s(), {x(seed)}); }
  grad_result backward(const forward_result& made) {
    return op.backward(s(), made.ticket, {gradient_of(op.op().y, made[op.op().y])});
  }
  names taken() { return std::exchange(marks->seen, {}); }

  weights own{desk};
  graphed_op<nn::sequence> op{own.mask_head(), desk.budget};
  std::shared_ptr<noted_marks> marks = std::make_shared<noted_marks>();
  tensor<float> kept;
  const names all{"linear 0", "gelu 1"};
};

REPRISE_ON_EACH_DEVICE(observers_of_ops);

TEST_P(observers_of_ops, are_told_once_a_call_and_make_it_eager) {
  (void)backward(forward(0));
  EXPECT_FALSE(op.is_observed());
  op.observe(marks);
  op.observe(marks);
  EXPECT_TRUE(op.is_observed());
  for (unsigned i = 1; i < 4; ++i) {
    const forward_result made = forward(i);
    EXPECT_EQ(made.how, ran::eager);
    EXPECT_EQ(made.why->rule, "observed");
    EXPECT_EQ(taken(), all);
    // The forward runs again for it, and tells nobody.
    EXPECT_EQ(backward(made).how, ran::eager);
    EXPECT_EQ(taken(), names{});
  }
  EXPECT_EQ(lines_with("op 'mask' runs eagerly (observed): an observer is told of its marks; take "
                       "the observer off to replay again"),
            1);
  op.stop_observing();
  EXPECT_FALSE(op.is_observed());
  EXPECT_EQ(forward(4).how, ran::replayed);
  EXPECT_EQ(taken(), names{});
}

TEST_P(observers_of_ops, are_told_of_inferences_that_were_recorded) {
  for (unsigned i = 0; i < 2; ++i) (void)op.infer(s(), {x(i)});
  EXPECT_EQ(op.infer(s(), {x(2)}).how, ran::replayed);
  op.observe(marks);
  const forward_result made = op.infer(s(), {x(3)});
  EXPECT_EQ(made.how, ran::eager);
  EXPECT_EQ(made.why->rule, "observed");
  EXPECT_EQ(taken(), all);
  op.stop_observing();
  EXPECT_EQ(op.infer(s(), {x(4)}).how, ran::replayed);
  EXPECT_EQ(taken(), names{});
}

TEST_P(observers_of_ops, are_told_inside_the_capture_of_somebody_else) {
  const operand given = x(1);
  op.observe(marks);
  std::optional<forward_result> made;
  const graph captured = capture(s(), [&](stream_ref) { made = op.forward(s(), {given}); });
  EXPECT_EQ(taken(), all);
  const executable runs = captured.instantiate(s());
  runs.launch(s());
  s().synchronize();
  EXPECT_EQ(taken(), names{}) << "a launch tells nobody";
}

TEST_P(observers_of_ops, of_all_ops_are_told_of_each) {
  graphed_op<nn::sequence> other{own.class_head(), desk.budget};
  graphed::observe_all(marks);
  op.observe(marks);
  EXPECT_TRUE(other.is_observed());
  EXPECT_EQ(graphed::observers_of_all().size(), 1U);
  (void)forward(1);
  (void)other.forward(s(), {{other.op().x, kept}});
  EXPECT_EQ(taken(), (names{"linear 0", "gelu 1", "linear 0"}));
  graphed::stop_observing_all();
  EXPECT_FALSE(other.is_observed());
  EXPECT_TRUE(op.is_observed());
  EXPECT_TRUE(graphed::observers_of_all().empty());
}

// It may take itself off while it is told.
TEST_P(observers_of_ops, may_leave_while_they_are_told) {
  class leaving final : public mark_observer {
   public:
    explicit leaving(graphed& from) : from_{from} {}
    void on_mark(step_scope&, point, const tensor_ref&) override {
      from_.stop_observing();
      ++times;
    }
    int times = 0;

   private:
    graphed& from_;
  };
  const auto one = std::make_shared<leaving>(op);
  op.observe(one);
  EXPECT_EQ(forward(1).how, ran::eager);
  EXPECT_EQ(one->times, 2) << "to the end of the call";
  EXPECT_EQ(forward(2).how, ran::captured);
}

}  // namespace
}  // namespace reprise::test
