// Host threads: those of one pool take turns, those of two run side by side.
#include <atomic>

#include "reprise/device/host_thread.hpp"
#include "scenarios/grad_kernels.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

class threads_of_ops : public grad_case {
 protected:
  // y = x, whose forward does this too.
  graphed passing(const std::string& name, std::function<void()> too, bool record) {
    signature declared{name};
    const auto x = declared.in<float>("x", {any, row});
    const auto y = declared.out<float>("y");
    inputs.push_back(x);
    return graphed{erased_op{declared,
                             [x, y, too](forward_scope& run) {
                               too();
                               copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                             },
                             [x, y](backward_scope& run) {
                               copy(run, read(run.grad(y)), write(run.grad(x)));
                             }},
                   desk.budget,
                   {.record = record}};
  }

  std::vector<input<float>> inputs;
};

REPRISE_ON_EACH_DEVICE(threads_of_ops);

// Steps of one op each, on these streams.
void step_in_two_threads(grad_desk& desk, stream_ref first, stream_ref second) {
  std::array<std::unique_ptr<subject>, 2> ops{std::make_unique<subject>(desk, op_kind::twofold),
                                              std::make_unique<subject>(desk, op_kind::counted)};
  const auto work = [&](subject& of, stream_ref on) {
    for (int i = 0; i < 8; ++i) {
      order(desk.work, on);
      const subject::call made = of.forward(on, i);
      const grad_result got = of.backward(on, made, i);
      on.synchronize();
      of.expect_output(made);
      of.expect_gradients(made, got, i);
    }
  };
  {
    host_thread one{desk.opened, [&] { work(*ops[0], first); }};
    host_thread two{desk.opened, [&] { work(*ops[1], second); }};
    one.join();
    two.join();
  }
  for (const auto& of : ops) {
    of->expect_state();
    const grad_counts counts = of->op().counts();
    EXPECT_EQ(counts.forwards(), 8U);
    EXPECT_EQ(counts.backwards(), 8U);
    EXPECT_EQ(counts.forward_capture + counts.forward_replay, 8U);
  }
}

TEST_P(threads_of_ops, on_one_pool_give_what_one_thread_gives) {
  step_in_two_threads(desk, s(), s());
}

TEST_P(threads_of_ops, on_two_pools_give_what_one_thread_gives) {
  const stream first{dev()};
  const stream second{dev()};
  step_in_two_threads(desk, first, second);
}

TEST_P(threads_of_ops, take_turns_on_a_pool) {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const auto body = [&] {
    const int now = ++inside;
    if (now > most) most = now;
    for (int i = 0; i < 5; ++i) pause(dev());
    --inside;
  };
  graphed a = passing("a", body, false);
  graphed b = passing("b", body, false);
  const tensor<float> in = desk.made(numbers(1, 8));
  const auto work = [&](graphed& op, const input<float>& x) {
    for (int i = 0; i < 10; ++i) op.forward(s(), {{x, in}});
  };
  host_thread one{dev(), [&] { work(a, inputs[0]); }};
  host_thread two{dev(), [&] { work(b, inputs[1]); }};
  one.join();
  two.join();
  EXPECT_EQ(most, 1);
}

// A call that is under way on one pool waits, in its body, for a call on another.
TEST_P(threads_of_ops, do_not_wait_for_each_other_on_two_pools) {
  std::atomic<bool> is_inside{false};
  std::atomic<bool> is_done{false};
  graphed a = passing(
      "a",
      [&] {
        is_inside = true;
        wait_until(dev(), [&] { return is_done.load(); });
      },
      false);
  graphed b = passing(
      "b", [] {}, true);
  const tensor<float> in = desk.made(numbers(1, 8));
  const stream other{dev()};
  host_thread one{dev(), [&] { a.forward(s(), {{inputs[0], in}}); }};
  wait_until(dev(), [&] { return is_inside.load(); });
  for (int i = 0; i < 2; ++i) b.forward(other, {{inputs[1], in}});
  is_done = true;
  one.join();
  EXPECT_EQ(told(a), "forward suspended 1");
  EXPECT_EQ(told(b), "forward_capture 1, forward_replay 1");
}

// The last ticket of an op may go on any thread, and its frame is let go on its own.
TEST_P(threads_of_ops, may_drop_tickets_of_another_threads_pool) {
  subject of{desk, op_kind::scaled, {.conflict = slots{3}}};
  for (int i = 0; i < 3; ++i) {
    std::vector<subject::call> pending;
    for (int k = 0; k < 3; ++k) pending.push_back(of.forward(k));
    host_thread other{dev(), [&] { pending.clear(); }};
    other.join();
  }
  EXPECT_EQ(of.op().frames(), 3U);
  EXPECT_EQ(of.counts(), "forward_capture 3, forward_replay 6");
  of.step(9);
}

}  // namespace
}  // namespace reprise::test
