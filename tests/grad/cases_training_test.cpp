// The field's cases for what reprise/nn keeps beside its weights: statistics of norms (G12), and
// the scale of a loss (G14).
#include "reprise/device/faulty.hpp"
#include "reprise/nn/batch_norm.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gradient_finish.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/loss_scaler.hpp"
#include "reprise/nn/network.hpp"
#include "reprise/nn/optimizers.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/nn/squared_error.hpp"
#include "tests/grad/support.hpp"
#include "tests/nn/plain_network.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 5;
constexpr std::int64_t width = 6;
constexpr float eps = 1e-4F;
constexpr float momentum = 0.25F;
constexpr float rate = 0.4F;

// A batch norm and a dropout behind it, and the same kernels launched plainly.
class normed_network {
 public:
  explicit normed_network(grad_desk& at) : at_{at} {
    net.add(nn::batch_norm{set[0], set[1], stats, {eps, momentum}});
    net.add(nn::dropout{rate, counter});
    floats begins(2 * width, 0.0F);
    std::fill(begins.begin() + width, begins.end(), 1.0F);
    plain_stats_ = desk_.upload(begins);
    plain_.add(plain_batch_norm(gain_, bias_, plain_stats_, eps, momentum));
    plain_.add(plain_dropout(rate, plain_counter_));
  }

  // A forward of each, whose outputs are the same.
  nn::network_call forward(int seed) {
    const floats x = numbers(seed, m * width);
    tensor<float> there = make_tensor<float>(at_.memory, {m, width}, at_.work);
    upload(at_.work, x, there.get());
    if (at_call) at_call();
    nn::network_call made = net.forward(at_.work, operand{net.x(), there});
    const plain_call expected = plain_.forward(desk_, {desk_.upload(x), m, width});
    EXPECT_BITS(at_.values_of(made.y.get()), at_.values_of(expected.y.all()));
    return made;
  }
  void expect_same_state() const {
    EXPECT_BITS(at_.values_of(stats.all()), at_.values_of(plain_stats_->all()));
    EXPECT_EQ(counter.next(), plain_counter_.next());
  }
  void expect_no_gradient() const {
    for (std::size_t i = 0; i < set.size(); ++i) EXPECT_FALSE(set[i].has_grad);
    EXPECT_BITS(at_.values_of(set.gradients()), floats(set.elements(), 99.0F));
  }

 private:
  grad_desk& at_;
  plain_desk desk_{at_.memory, at_.work};

 public:
  nn::parameter_set set{at_.memory, at_.work, nn::norm_parameters("norm", width), 5};
  nn::running_stats stats{at_.memory, width, at_.work};
  philox_counter counter{17};
  nn::network net{at_.budget};
  std::function<void()> at_call;

 private:
  plain_parameter gain_{desk_.upload(floats(width, 1.0F)), desk_.take<float>(width)};
  plain_parameter bias_{desk_.upload(floats(width, 0.0F)), desk_.take<float>(width)};
  std::shared_ptr<buffer<float>> plain_stats_;
  philox_counter plain_counter_{17};
  plain_network plain_;
};

class training_cases : public grad_case {};

REPRISE_ON_EACH_DEVICE(training_cases);

// Each recording has a warm-up of its own: eleven of them, and a replay of the last.
TEST_P(training_cases, G12_recording_a_norm_moves_its_statistics_as_one_forward_does) {
  normed_network of{desk};
  const void* const lies_at = of.stats.all().data();
  upload(s(), floats(of.set.elements(), 99.0F), of.set.gradients());
  for (int i = 0; i < 11; ++i) {
    graphed::reset();
    (void)of.forward(i);
    of.expect_same_state();
    of.expect_no_gradient();
  }
  (void)of.forward(11);
  of.expect_same_state();
  of.expect_no_gradient();
  EXPECT_EQ(of.stats.all().data(), lies_at);
  EXPECT_EQ(told(of.net.at(0)), "forward_capture 11, forward_replay 1");
  EXPECT_EQ(told(of.net.at(1)), "forward_capture 11, forward_replay 1");
}

TEST_P(training_cases, G12_a_warm_up_of_a_norm_that_throws_moves_them_once_all_the_same) {
  const auto plan = std::make_shared<fault_plan>();
  grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
  normed_network of{at};
  for (int i = 0; i < 11; ++i) {
    graphed::reset();
    if (i == 4) of.at_call = [&] { plan->fail_call(seam_call::kernel, 1); };
    (void)of.forward(i);
    of.at_call = nullptr;
    EXPECT_EQ(plan->fired(), i >= 4);
    of.expect_same_state();
  }
  EXPECT_EQ(told(of.net.at(0)), "forward_capture 10, forward capture_failed 1");
  EXPECT_EQ(told(of.net.at(1)), "forward_capture 11");
}

// Nobody waits between the steps: a backward has the scale that was in force when it was enqueued.
TEST_P(training_cases, G14_a_scale_that_moves_reaches_the_backwards_behind_it_alone) {
  const floats x = numbers(2, m * width);
  const floats target = numbers(3, m * width);
  tensor<float> from = make_tensor<float>(desk.memory, {m, width}, s());
  tensor<float> to = make_tensor<float>(desk.memory, {m, width}, s());
  upload(s(), x, from.get());
  upload(s(), target, to.get());
  graphed_op loss{nn::squared_error{}, desk.budget, {.conflict = slots{2}}};
  for (const bool anew : {false, true}) {
    SCOPED_TRACE(anew ? "in a new buffer" : "in place");
    nn::loss_scaler in_place{desk.memory, s(), {.scale = 1024, .interval = 1, .most = 1024}};
    std::vector<std::unique_ptr<nn::loss_scaler>> others;
    std::vector<tensor<float>> slopes;
    const floats scales{1024, 512, 1024};
    for (std::size_t i = 0; i < scales.size(); ++i) {
      others.push_back(std::make_unique<nn::loss_scaler>(
          desk.memory, s(), nn::loss_scale_options{.scale = scales[i]}));
      nn::loss_scaler& scaler = anew ? *others.back() : in_place;
      const auto call = loss.forward(s(), {{loss.op().x, from}, {loss.op().target, to}});
      const auto got =
          loss.backward(s(), call.ticket, {gradient_of(loss.op().loss, scaler.cotangent(s()))},
                        wanted::only(loss.op().x));
      slopes.push_back(got[loss.op().x]);
      in_place.update(i == 1);  // an overflow, and then none
    }
    for (std::size_t i = 0; i < scales.size(); ++i) {
      floats expected;
      const float by = 2.0F * scales[i] / static_cast<float>(x.size());
      for (std::size_t at = 0; at < x.size(); ++at) expected.push_back((x[at] - target[at]) * by);
      EXPECT_BITS(desk.values_of(slopes[i].get()), expected);
    }
  }
  EXPECT_EQ(told(loss),
            "forward_capture 1, forward_replay 5, backward_capture 1, backward_replay 5");
}

// Scales are powers of two, so that training has the bits that it has without one, window for
// window that was not skipped.
TEST_P(training_cases, G14_an_overflow_skips_its_update_and_halves_the_scale) {
  constexpr std::int64_t n = 3;
  nn::parameter_set set{desk.memory, s(), nn::linear_parameters("a", n, width), 5};
  nn::network net{desk.budget};
  net.add(nn::linear{set[0], set[1]});
  graphed_op loss{nn::squared_error{}, desk.budget};
  replay_cache cache{dev()};
  nn::gradient_finish finish{set, desk.memory, s()};
  nn::loss_scaler scaler{desk.memory, s(), {.scale = 0x1p127F, .most = 0x1p127F}};
  nn::adamw by{set, desk.memory, s(), {.rate = 0.01F, .weight_decay = 0.1F}};

  plain_desk plain_at{desk.memory, s()};
  std::vector<plain_parameter> plain;
  for (const nn::stored_parameter& one : set.to_host(s())) {
    plain.push_back({plain_at.upload(one.values), plain_at.take<float>(one.values.size())});
  }
  plain_network plain_net;
  plain_net.add(plain_linear(plain[0], &plain[1]));
  plain_adamw plain_by{plain_at, {&plain[0], &plain[1]}, 0.01F, 0.1F};

  int skipped = 0;
  for (int window = 0; window < 12; ++window) {
    const floats x = times(8.0F, numbers(window, m * width));
    const floats target = numbers(window + 50, m * n);
    tensor<float> from = make_tensor<float>(desk.memory, {m, width}, s());
    tensor<float> to = make_tensor<float>(desk.memory, {m, n}, s());
    upload(s(), x, from.get());
    upload(s(), target, to.get());
    set.drop_gradients();
    const nn::network_call call = net.forward(s(), operand{net.x(), from});
    const auto of = loss.forward(s(), {{loss.op().x, call.y}, {loss.op().target, to}});
    const auto dy =
        loss.backward(s(), of.ticket, {gradient_of(loss.op().loss, scaler.cotangent(s()))},
                      wanted::only(loss.op().x));
    net.backward(s(), call, dy[loss.op().x]);
    const float scale = scaler.scale();
    finish.run(s(), cache, scale);
    const bool is_finite = finish.read(s()).finite;
    scaler.update(is_finite);
    if (is_finite) {
      by.update(s(), cache);
      plain[0].has_grad = plain[1].has_grad = false;
      const plain_call there = plain_net.forward(plain_at, {plain_at.upload(x), m, width});
      const plain_loss of_plain =
          plain_squared_error(plain_at, there.y, {plain_at.upload(target), m, n}, 1.0F);
      plain_net.backward(plain_at, there, of_plain.dx);
      plain_by.update(plain_at);
    } else {
      EXPECT_EQ(scaler.scale(), scale / 2);
      ++skipped;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_BITS(desk.values_of(elements_of<const float>(set[i].value)),
                  desk.values_of(plain[i].value->all()));
    }
  }
  EXPECT_GE(skipped, 2);
  EXPECT_LE(skipped, 9);
  EXPECT_EQ(by.updates(), static_cast<std::uint64_t>(12 - skipped));
}

}  // namespace
}  // namespace reprise::test
