// Memory that runs out in a first backward: the pool goes, and only it.
#include "reprise/device/faulty.hpp"
#include "reprise/device/memory_report.hpp"
#include "scenarios/grad_kernels.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

// y = x w, with a backward that takes `scratch` bytes.
class hungry {
 public:
  hungry(grad_desk& at, std::int64_t scratch)
      : at_{at},
        weight{at, weights},
        declared{make(weight)},
        x{declared.in<float>("x", {any, row})},
        y{declared.out<float>("y")},
        op{erased_op{declared,
                     [this](forward_scope& run) {
                       launch(run, scenarios::product, read(run[x]),
                              read(elements_of<const float>(weight.at.value)),
                              write(run.make(y, run.shape(x))));
                     },
                     [this, scratch](backward_scope& run) {
                       const view<std::uint8_t> much = run.scratch<std::uint8_t>({scratch});
                       fill(run, write<std::uint8_t>{much}, std::uint8_t{1});
                       if (run.wants(x)) {
                         launch(run, scenarios::product, read(run.grad(y)),
                                read(elements_of<const float>(weight.at.value)),
                                write(run.grad(x)));
                       }
                       const delivery d = run.add_to(weight.at);
                       launch(run, scenarios::deliver_rows, read(run.grad(y)), read(run.saved(x)),
                              read(d.rule), inout(d.to));
                     }},
           at.budget} {}

  forward_result forward() { return op.forward(at_.work, {{x, at_.made(in)}}); }
  grad_result backward(const forward_result& of) {
    grad_result got = op.backward(at_.work, of.ticket, {gradient_of(y, at_.made(dy))});
    EXPECT_BITS(at_.values_of(got[x].get()), on_host::scaled_dx(dy, weights, 1.0F));
    const floats one = on_host::scaled_dw(dy, in, row, 1.0F);
    if (sum.empty()) {
      sum = one;
    } else {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    EXPECT_BITS(at_.values_of(weight.gradient.all()), sum) << "delivered exactly once";
    return got;
  }

  const floats weights = numbers(1, row);
  const floats in = numbers(2, 8);
  const floats dy = numbers(3, 8);
  floats sum;

 private:
  static signature make(trained_weight& weight) {
    signature declared{"hungry"};
    declared.trains("w", weight.at);
    return declared;
  }

  grad_desk& at_;

 public:
  trained_weight weight;
  signature declared;
  input<float> x;
  output<float> y;
  graphed op;
};

class memory_cases : public grad_case {
 protected:
  static std::size_t bytes_of_pools(device_ref device, std::string_view label) {
    std::size_t bytes = 0;
    for (const pool_figures& one : report_memory(device).pools) {
      if (one.label == label) bytes += one.bytes;
    }
    return bytes;
  }
};

REPRISE_ON_EACH_DEVICE(memory_cases);

constexpr std::int64_t much = std::int64_t{32} << 20;

TEST_P(memory_cases, that_runs_out_in_a_first_backward_gives_back_the_pool_and_only_it) {
  const auto plan = std::make_shared<fault_plan>();
  grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
  const stream elsewhere{at.opened};
  subject early{at, op_kind::scaled, {}, {}, "early"};
  hungry eats{at, much};
  subject late{at, op_kind::rewinding, {}, {}, "late"};
  subject alone{at, op_kind::counted, {}, {}, "alone"};
  subject other{at, op_kind::noisy, {}, {}, "other"};

  const forward_result eaten = eats.forward();
  early.step(1);  // its backward closes the pool
  const subject::call first = early.forward(2);
  const subject::call behind = alone.forward(3);  // in a pool of its own
  const auto on_other_stream = [&](int values) {
    order(at.work, elsewhere);
    const subject::call made = other.forward(elsewhere, values);
    const grad_result got = other.backward(elsewhere, made, values);
    order(elsewhere, at.work);
    other.expect_output(made);
    other.expect_gradients(made, got, values);
    other.expect_state();
  };
  on_other_stream(4);
  EXPECT_GT(bytes_of_pools(at.opened, "frames"), 0U);

  plan->fail_call(seam_call::allocate, 1);
  const grad_result got = eats.backward(eaten);
  EXPECT_TRUE(plan->fired());
  EXPECT_EQ(got.how, ran::eager);
  EXPECT_EQ(got.why->rule, "released");
  EXPECT_EQ(told(eats.op), "forward_capture 1, backward released 1");
  EXPECT_EQ(early.op().bytes(), 0U);

  // What was pending there is formed from what was saved.
  early.expect_gradients(first, early.backward(first, 2), 2);
  early.expect_state();
  // What lies outside goes on.
  alone.expect_gradients(behind, alone.backward(behind, 3), 3);
  alone.step(5);
  on_other_stream(6);
  EXPECT_EQ(alone.counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1");
  EXPECT_EQ(other.counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1");
  // One that is new has a pool of its own kind again.
  late.step(7);
  late.step(8);
  EXPECT_EQ(late.counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1");

  for (int i = 0; i < 3; ++i) {
    const forward_result again = eats.forward();
    EXPECT_EQ(again.how, ran::eager);
    EXPECT_EQ(again.why->rule, "released");
    eats.backward(again);
    early.step(i);
  }
  EXPECT_EQ(told(eats.op), "forward_capture 1, forward released 3, backward released 4");
  EXPECT_EQ(early.counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, forward released 3, "
            "backward released 4");
  EXPECT_EQ(lines_with("op 'hungry' runs eagerly (released)"), 1);
  EXPECT_EQ(lines_with("op 'early' runs eagerly (released)"), 1);
  EXPECT_EQ(lines_with("(released)"), 2);

  graphed::reset();
  EXPECT_EQ(eats.forward().how, ran::captured);
  const forward_result again = eats.forward();
  EXPECT_EQ(again.how, ran::replayed) << "the first one's ticket is gone";
  EXPECT_EQ(eats.backward(again).how, ran::captured);
  early.step(9);
  early.step(10);
  EXPECT_EQ(early.counts(),
            "forward_capture 2, forward_replay 2, backward_capture 2, backward_replay 1, "
            "forward released 3, backward released 4");
}

// The eager run had its memory, and the capture behind it has none.
TEST_P(memory_cases, that_runs_out_in_the_capture_of_a_backward_leaves_the_pool) {
  int released = 0;
  int failed = 0;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 30U);
    SCOPED_TRACE("allocation " + std::to_string(n));
    const auto plan = std::make_shared<fault_plan>();
    grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
    hungry eats{at, much};
    subject beside{at, op_kind::scaled, {}, {}, "beside"};
    const subject::call pending = beside.forward(1);
    const forward_result call = eats.forward();
    plan->fail_call(seam_call::allocate, n);
    const grad_result got = eats.backward(call);
    const bool fired = plan->fired();
    plan->fail_call(0);
    const auto by_release = static_cast<std::size_t>(eager_cause::released);
    if (eats.op.counts().eager_backward[by_release] != 0) {
      ++released;
      EXPECT_EQ(told(eats.op), "forward_capture 1, backward released 1");
      beside.expect_gradients(pending, beside.backward(pending, 1), 1);
      EXPECT_EQ(beside.counts(), "forward_capture 1, backward released 1");
      continue;
    }
    beside.expect_gradients(pending, beside.backward(pending, 1), 1);
    beside.expect_state();
    EXPECT_EQ(beside.counts(), "forward_capture 1, backward_capture 1");
    const grad_result next = eats.backward(eats.forward());
    if (got.how == ran::captured) {
      EXPECT_EQ(next.how, ran::replayed);
      if (!fired) break;
      continue;  // idle memory was given back, and it was there then
    }
    ++failed;
    EXPECT_EQ(next.how, ran::eager);
    EXPECT_EQ(next.why->rule, "capture failed");
    EXPECT_EQ(told(eats.op), "forward_capture 1, forward_replay 1, backward backward 2");
  }
  EXPECT_GE(released, 1);
  EXPECT_GE(failed, 1);
  EXPECT_EQ(lines_with("op 'hungry' runs eagerly (backward)"), failed);
}

}  // namespace
}  // namespace reprise::test
