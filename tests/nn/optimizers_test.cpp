// Optimizers: their formulas, what they leave alone, and that an update is replayed.
#include "reprise/nn/optimizers.hpp"

#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "reprise/device/faulty.hpp"
#include "reprise/sim/device.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t width = 70;

nn::parameter_specs three_of_them() {
  return {
      {"a", {width}, nn::uniform{1}}, {"b", {3, 5}, nn::uniform{1}}, {"c", {1}, nn::uniform{1}}};
}

// The formulas in double, for one parameter.
struct by_hand {
  std::vector<double> weight, first, second;

  explicit by_hand(const std::vector<float>& values)
      : weight(values.begin(), values.end()), first(values.size()), second(values.size()) {}

  void sgd(const std::vector<float>& gradient, const nn::sgd_options& o) {
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double g =
          static_cast<double>(gradient[i]) + static_cast<double>(o.weight_decay) * weight[i];
      first[i] = static_cast<double>(o.momentum) * first[i] + g;
      weight[i] -= static_cast<double>(o.rate) * first[i];
    }
  }
  void adamw(const std::vector<float>& gradient, const nn::adamw_options& o, int t) {
    const double beta1 = static_cast<double>(o.beta1);
    const double beta2 = static_cast<double>(o.beta2);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double g = static_cast<double>(gradient[i]);
      first[i] = beta1 * first[i] + (1 - beta1) * g;
      second[i] = beta2 * second[i] + (1 - beta2) * g * g;
      const double m = first[i] / (1 - std::pow(beta1, t));
      const double v = second[i] / (1 - std::pow(beta2, t));
      const double rate = static_cast<double>(o.rate);
      weight[i] -= rate * static_cast<double>(o.weight_decay) * weight[i];
      weight[i] -= rate * m / (std::sqrt(v) + static_cast<double>(o.eps));
    }
  }
};

class optimizers : public on_each_device {
 protected:
  nn::parameter_set set{here.memory, here.work, three_of_them(), 3};
  replay_cache cache{here.opened};

  std::vector<float> values(std::size_t i) {
    return read_back<float>(here.work, elements_of<const float>(set[i].value));
  }
  void give_gradient(std::size_t i, const std::vector<float>& gradient) {
    upload(here.work, gradient, elements_of<float>(set[i].grad));
    set[i].has_grad = true;
  }
  std::vector<float> gradient(std::size_t i, int update) {
    return numbers(set[i].value.shape.count(),
                   static_cast<unsigned>(10 * update) + 77 + static_cast<unsigned>(i));
  }
  // Weights of size 1 after few updates, each operation rounded to 6e-8.
  void expect_near(std::size_t i, const by_hand& expected) {
    const std::vector<float> actual = values(i);
    for (std::size_t at = 0; at < actual.size(); ++at) {
      ASSERT_NEAR(static_cast<double>(actual[at]), expected.weight[at], 2e-6)
          << set.name(i) << "[" << at << "]";
    }
  }
  // Four updates with gradients for all, by a rate that changes.
  template <class O, class Apply>
  void expect_updates(O& by, Apply&& apply) {
    std::vector<by_hand> expected;
    for (std::size_t i = 0; i < set.size(); ++i) expected.emplace_back(values(i));
    for (int t = 1; t <= 4; ++t) {
      by.set_rate(0.01F * static_cast<float>(t));
      for (std::size_t i = 0; i < set.size(); ++i) {
        give_gradient(i, gradient(i, t));
        apply(expected[i], gradient(i, t), t);
      }
      by.update(here.work, cache);
      for (std::size_t i = 0; i < set.size(); ++i) expect_near(i, expected[i]);
    }
    EXPECT_EQ(cache.counts().captured, 1U);
    EXPECT_EQ(cache.counts().replayed, 3U) << cache.explain();
  }
};

TEST_P(optimizers, sgd_is_its_formula_and_is_replayed_while_its_rate_changes) {
  nn::sgd by{set, here.memory, here.work, {.weight_decay = 0.1F}};
  expect_updates(by, [&](by_hand& w, const std::vector<float>& g, int) { w.sgd(g, by.options()); });
  EXPECT_EQ(by.velocity().size(), 0U);
}

TEST_P(optimizers, sgd_with_momentum_is_its_formula) {
  nn::sgd by{set, here.memory, here.work, {.momentum = 0.9F, .weight_decay = 0.01F}};
  expect_updates(by, [&](by_hand& w, const std::vector<float>& g, int) { w.sgd(g, by.options()); });
  EXPECT_EQ(by.velocity().size(), set.elements());
}

TEST_P(optimizers, adamw_is_its_formula) {
  nn::adamw by{set, here.memory, here.work, {.weight_decay = 0.1F}};
  expect_updates(
      by, [&](by_hand& w, const std::vector<float>& g, int t) { w.adamw(g, by.options(), t); });
  EXPECT_EQ(by.updates(), 4U);
}

TEST_P(optimizers, leave_a_parameter_without_a_gradient_and_its_moments_alone) {
  nn::adamw by{set, here.memory, here.work, {}};
  give_gradient(0, gradient(0, 1));
  give_gradient(2, gradient(2, 1));
  const std::vector<float> before = values(1);
  const std::uint64_t version = set[1].version.value();
  const std::uint64_t version_of_updated = set[0].version.value();
  by.update(here.work, cache);
  EXPECT_TRUE(same_bits(values(1), before));
  EXPECT_EQ(set[1].version.value(), version);
  EXPECT_GT(set[0].version.value(), version_of_updated);
  EXPECT_FALSE(same_bits(
      values(0),
      nn::parameter_set{here.memory, here.work, three_of_them(), 3}.to_host(here.work)[0].values));
  const std::vector<float> moments = read_back<float>(here.work, by.second_moments());
  for (std::size_t at = set.begin(1); at < set.end(1); ++at) EXPECT_EQ(moments[at], 0.0F);
  for (std::size_t at = set.begin(2); at < set.end(2); ++at) EXPECT_GT(moments[at], 0.0F);
}

TEST_P(optimizers, do_nothing_where_no_parameter_has_a_gradient) {
  nn::adamw by{set, here.memory, here.work, {}};
  const std::uint64_t version = set[0].version.value();
  by.update(here.work, cache);
  EXPECT_EQ(by.updates(), 0U);
  EXPECT_EQ(set[0].version.value(), version);
  EXPECT_EQ(cache.counts().captured + cache.counts().replayed + cache.counts().eager, 0U);
}

TEST_P(optimizers, record_each_set_of_gradients_on_its_own) {
  nn::sgd by{set, here.memory, here.work, {}};
  for (int round = 0; round < 3; ++round) {
    set.drop_gradients();
    give_gradient(0, gradient(0, round));
    by.update(here.work, cache);
    give_gradient(1, gradient(1, round));
    by.update(here.work, cache);
  }
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 4U);
}

TEST_P(optimizers, take_neighbours_that_have_gradients_together) {
  EXPECT_TRUE(nn::updated_spans(set).empty());
  set[0].has_grad = set[1].has_grad = true;
  ASSERT_EQ(nn::updated_spans(set).size(), 1U);
  EXPECT_EQ(nn::updated_spans(set)[0].begin, set.begin(0));
  EXPECT_EQ(nn::updated_spans(set)[0].end, set.end(1));
  set[1].has_grad = false;
  set[2].has_grad = true;
  ASSERT_EQ(nn::updated_spans(set).size(), 2U);
  EXPECT_EQ(nn::updated_spans(set)[0].end, set.end(0));
  EXPECT_EQ(nn::updated_spans(set)[1].begin, set.begin(2));
}

TEST_P(optimizers, leave_the_zeros_between_parameters_zeros) {
  nn::adamw by{set, here.memory, here.work, {.weight_decay = 0.5F}};
  for (int t = 1; t <= 3; ++t) {
    for (std::size_t i = 0; i < set.size(); ++i) give_gradient(i, gradient(i, t));
    by.update(here.work, cache);
  }
  const std::vector<float> all = read_back<float>(here.work, set.values());
  for (std::size_t at = set.end(0); at < set.begin(1); ++at) EXPECT_EQ(all[at], 0.0F);
}

// What was saved goes on as if nothing had happened.
TEST_P(optimizers, go_on_from_a_count_of_updates_and_their_moments) {
  const auto update = [&](nn::adamw& by, int t) {
    for (std::size_t i = 0; i < set.size(); ++i) give_gradient(i, gradient(i, t));
    by.update(here.work, cache);
  };
  nn::adamw first{set, here.memory, here.work, {}};
  update(first, 1);
  update(first, 2);
  const auto stored = set.to_host(here.work);
  const auto m = read_back<float>(here.work, first.first_moments());
  const auto v = read_back<float>(here.work, first.second_moments());
  update(first, 3);
  const std::vector<float> expected = read_back<float>(here.work, set.values());

  nn::adamw second{set, here.memory, here.work, {}};
  set.from_host(here.work, stored);
  upload(here.work, m, second.first_moments());
  upload(here.work, v, second.second_moments());
  second.set_updates(2);
  update(second, 3);
  EXPECT_TRUE(same_bits(read_back<float>(here.work, set.values()), expected));
}

// No loop counts them: one that did would take hours.
TEST_P(optimizers, go_on_from_any_count_of_updates) {
  nn::adamw by{set, here.memory, here.work, {.weight_decay = 0}};
  constexpr std::uint64_t many = std::uint64_t{1} << 40;
  by.set_updates(many);
  give_gradient(2, {1.0F});
  const float before = values(2)[0];
  by.update(here.work, cache);
  EXPECT_EQ(by.updates(), many + 1);
  // By moments that begin as zeros and are not biased any more: (1 - beta1) / sqrt(1 - beta2).
  EXPECT_NEAR(values(2)[0], before - 1e-3F * 0.1F / std::sqrt(0.001F), 1e-6F);
}

TEST_P(optimizers, refuse_what_they_cannot_update_by_before_they_take_memory) {
  const auto refused = [&](const nn::adamw_options& options) -> std::string {
    const std::uint64_t taken = (*here.calls)[seam_call::allocate];
    try {
      const nn::adamw by{set, here.memory, here.work, options};
    } catch (const usage_error& refusal) {
      EXPECT_EQ((*here.calls)[seam_call::allocate], taken);
      return refusal.what();
    }
    return "nothing was refused";
  };
  EXPECT_EQ(refused({.beta2 = 1}),
            "adamw: a beta of 1 does not decay; give one of 0 at least and less than 1");
  EXPECT_EQ(refused({.eps = 0}), "adamw: an eps of 0 may divide zero by zero; give one over 0");
  EXPECT_EQ(refused({.eps = -1e-8F}),
            "adamw: an eps of -1e-08 may divide zero by zero; give one over 0");
}

// Three updates of one parameter, the last of which fails once and is asked for again.
std::vector<float> updated_thrice(bool fails_once) {
  const auto plan = std::make_shared<fault_plan>();
  auto implementation = faulty(sim::open_cpu(1), plan);
  auto table = resolve_kernels(builtin_kernels(), implementation->traits());
  const device opened{std::move(implementation), std::move(table)};
  stream work{opened};
  pool memory{opened, "test"};
  nn::parameter_set set{memory, work, {{"a", {width}, nn::uniform{1}}}, 3};
  replay_cache cache{opened};
  nn::adamw by{set, memory, work, {}};
  upload(work, numbers(width, 5), elements_of<float>(set[0].grad));
  set[0].has_grad = true;
  by.update(work, cache);
  by.update(work, cache);
  if (fails_once) {
    const std::uint64_t version = set[0].version.value();
    plan->fail_call(seam_call::launch, 1);
    EXPECT_THROW(by.update(work, cache), device_error);
    EXPECT_TRUE(plan->fired());
    EXPECT_EQ(by.updates(), 2U);
    EXPECT_GT(set[0].version.value(), version) << "nobody knows what it has changed";
  }
  by.update(work, cache);
  EXPECT_EQ(by.updates(), 3U);
  return read_back<float>(work, set.values());
}

TEST(an_update, that_fails_is_not_counted) {
  EXPECT_TRUE(same_bits(updated_thrice(true), updated_thrice(false)));
}

INSTANTIATE_TEST_SUITE_P(devices, optimizers, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
