// The field's cases for what reprise/nn keeps beside its weights: statistics of norms (G12).
#include "reprise/device/faulty.hpp"
#include "reprise/nn/batch_norm.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/network.hpp"
#include "reprise/nn/parameters.hpp"
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

}  // namespace
}  // namespace reprise::test
