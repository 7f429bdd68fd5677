// A backward of a network, each of whose calls of the device fails in turn, and which is called
// again then: every gradient is added once.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/faulty.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 3;
constexpr std::int64_t k = 5;
constexpr std::int64_t n = 2;
constexpr std::int64_t inner = 4;

enum class span : unsigned char { none, middle, all };

// While it lives nobody is told of captures that failed.
class unlogged {
 public:
  unlogged() {
    set_log_sink([](std::string_view) {});
  }
  ~unlogged() { set_log_sink({}); }
  unlogged(const unlogged&) = delete;
  unlogged& operator=(const unlogged&) = delete;
};

// A network on a device whose calls fail by a plan.
class trial {
 public:
  explicit trial(span checkpointed, const graphed_options& options = {}) : net_{budget_, options} {
    if (checkpointed == span::all) net_.begin_checkpoint("all");
    net_.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
    if (checkpointed == span::middle) net_.begin_checkpoint("middle");
    net_.add(nn::layer_norm{set.at("norm.gain"), set.at("norm.bias")});
    net_.add(nn::dropout{0.25F, counter_});
    if (checkpointed == span::middle) net_.end_checkpoint();
    net_.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
    if (checkpointed == span::all) net_.end_checkpoint();
  }

  nn::network_call forward(unsigned seed) {
    return net_.forward(work_, operand{net_.x(), made(numbers(m * k, seed), {m, k})});
  }
  tensor<float> backward(const nn::network_call& call) {
    return net_.backward(work_, call, dy_, true);
  }
  // Its n-th call of the device fails. Empty where that is thrown.
  std::optional<tensor<float>> backward_that_fails(const nn::network_call& call,
                                                   std::uint64_t nth) {
    plan_->fail_call(nth);
    std::optional<tensor<float>> dx;
    try {
      dx = backward(call);
    } catch (const error& failed) {
      EXPECT_NE(std::string_view{failed.what()}.find("injected fault"), std::string_view::npos)
          << failed.what();
    }
    fired = plan_->fired();
    plan_->fail_call(0);
    EXPECT_TRUE(fired || dx);
    return dx;
  }
  // What all backwards add to, and then the last gradient of x.
  std::vector<float> seen(const tensor<float>& dx) {
    std::vector<float> all = read_back<float>(work_, set.gradients());
    const std::vector<float> last = read_back<float>(work_, dx.get());
    all.insert(all.end(), last.begin(), last.end());
    return all;
  }

  bool fired = false;

 private:
  static device opened_by(const std::shared_ptr<fault_plan>& plan) {
    auto implementation = faulty(sim::open_cpu(1), plan);
    auto table = resolve_kernels(builtin_kernels(), implementation->traits());
    return device{std::move(implementation), std::move(table)};
  }
  tensor<float> made(const std::vector<float>& values, const dims& shape) {
    tensor<float> there = make_tensor<float>(memory_, shape, work_);
    upload(work_, values, there.get());
    return there;
  }

  const unlogged quiet_;
  std::shared_ptr<fault_plan> plan_ = std::make_shared<fault_plan>();
  device opened_ = opened_by(plan_);
  stream work_{opened_};
  pool memory_{opened_, "test"};
  byte_budget budget_{byte_budget::unlimited};
  philox_counter counter_{9};
  tensor<float> dy_ = made(numbers(m * n, 2), {m, n});

 public:
  nn::parameter_set set{
      memory_, work_,
      nn::joined({nn::linear_parameters("in", inner, k), nn::norm_parameters("norm", inner),
                  nn::linear_parameters("out", n, inner)}),
      3};

 private:
  nn::network net_;
};

// What is there after `before` steps, a backward that may fail, and one step more.
struct outcome_of_three {
  std::vector<float> after, later;
  bool fired = false;
};
outcome_of_three run(trial& on, unsigned before, std::uint64_t nth) {
  for (std::size_t i = 0; i < on.set.size(); ++i) on.set[i].has_grad = true;  // of zeros: add
  for (unsigned i = 0; i < before; ++i) on.backward(on.forward(10 + i));
  outcome_of_three found;
  {
    const nn::network_call call = on.forward(20);
    const std::optional<tensor<float>> dx = on.backward_that_fails(call, nth);
    found.fired = on.fired;
    found.after = on.seen(dx ? *dx : on.backward(call));
  }
  found.later = on.seen(on.backward(on.forward(21)));
  return found;
}

void walk(span where, unsigned before, std::uint64_t at_least) {
  trial plain{span::none, {.record = false}};
  const outcome_of_three expected = run(plain, before, 0);
  std::uint64_t failed = 0;
  for (std::uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 1000U) << "the walk over all calls does not end";
    SCOPED_TRACE("call " + std::to_string(nth));
    trial on{where};
    const outcome_of_three found = run(on, before, nth);
    ASSERT_TRUE(same_bits(found.after, expected.after)) << "right after it was called again";
    ASSERT_TRUE(same_bits(found.later, expected.later));
    if (!found.fired) break;
    ++failed;
  }
  EXPECT_GE(failed, at_least) << "there are more calls than that";
}

TEST(a_failed_backward_of_a_network, goes_on_where_it_is_replayed) {
  walk(span::none, 2, 4);
}
TEST(a_failed_backward_of_a_network, goes_on_where_it_is_captured) {
  walk(span::none, 0, 60);
}
TEST(a_failed_backward_of_a_network, goes_on_in_a_checkpointed_span) {
  walk(span::middle, 2, 6);
  walk(span::all, 2, 8);
}
TEST(a_failed_backward_of_a_network, goes_on_where_a_checkpointed_span_is_captured) {
  walk(span::middle, 0, 60);
  walk(span::all, 0, 60);
}

TEST(a_failed_backward_of_a_network, is_over_once_what_it_has_formed_is_dropped) {
  trial on{span::none};
  for (unsigned i = 0; i < 2; ++i) on.backward(on.forward(i));
  for (std::uint64_t nth = 1;; ++nth) {
    on.set.drop_gradients();
    const nn::network_call call = on.forward(3);
    ASSERT_FALSE(on.backward_that_fails(call, nth)) << "no call failed between two layers";
    if (!on.set.at("norm.bias").has_grad || on.set.at("in.bias").has_grad) continue;
    on.set.drop_gradients();
    try {
      on.backward(call);
      FAIL() << "taken";
    } catch (const usage_error& refused) {
      EXPECT_STREQ(refused.what(),
                   "network: layer 'layer_norm': the gradient of 'gain' was dropped before the "
                   "backward that formed it came to its end; run the forward again");
    }
    EXPECT_FALSE(on.set.at("in.bias").has_grad) << "nothing was run";
    break;
  }
}

}  // namespace
}  // namespace reprise::test
