// What is done to gradients before an update: their scale, their norm, and what is left alone.
#include "reprise/nn/gradient_finish.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "reprise/nn/updated_spans.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

nn::parameter_specs three_of_them() {
  return {{"a", {70}, nn::uniform{1}}, {"b", {3, 5}, nn::uniform{1}}, {"c", {1}, nn::uniform{1}}};
}

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

class finished_gradients : public on_each_device {
 protected:
  nn::parameter_set set{here.memory, here.work, three_of_them(), 3};
  replay_cache cache{here.opened};
  nn::gradient_finish finish{set, here.memory, here.work};

  std::vector<float> all_gradients() { return read_back<float>(here.work, set.gradients()); }
  std::vector<float> gradient(std::size_t i) {
    return read_back<float>(here.work, elements_of<const float>(set[i].grad));
  }
  // Numbers of a size, for each parameter.
  void give_gradients(unsigned seed, float size, nn::parameter_set& to) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::vector<float> values =
          numbers(to[i].value.shape.count(), 10 * seed + static_cast<unsigned>(i));
      for (float& value : values) value *= size;
      upload(here.work, values, elements_of<float>(to[i].grad));
      to[i].has_grad = true;
    }
  }
  void give_gradients(unsigned seed, float size) { give_gradients(seed, size, set); }
};

// What a run must leave, by the formulas in double.
struct by_hand {
  std::vector<double> gradients;
  double norm = 0;

  by_hand(const std::vector<float>& before, double scale, double most) {
    for (const float one : before) {
      gradients.push_back(static_cast<double>(one) / scale);
      norm += gradients.back() * gradients.back();
    }
    norm = std::sqrt(norm);
    const double factor = most == 0 ? 1 : std::min(1.0, most / (norm + 1e-6));
    for (double& one : gradients) one *= factor;
  }
};

TEST_P(finished_gradients, are_unscaled_and_clipped_by_one_recording) {
  unsigned seed = 1;
  for (const auto& [scale, most] :
       {std::pair{1024.0F, 0.0F}, {512.0F, 1.0F}, {3.0F, 0.01F}, {1.0F, 1000.0F}, {1.0F, 0.5F}}) {
    SCOPED_TRACE(std::to_string(scale) + " at most " + std::to_string(most));
    give_gradients(seed++, scale);
    const by_hand want{all_gradients(), static_cast<double>(scale), static_cast<double>(most)};
    finish.run(here.work, cache, scale, most);
    const nn::gradient_facts found = finish.read(here.work);
    EXPECT_NEAR(static_cast<double>(found.norm), want.norm, 1e-6 * want.norm);
    EXPECT_TRUE(found.finite);
    const std::vector<float> got = all_gradients();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(got[i]), want.gradients[i], 1e-6);
    }
  }
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 4U) << cache.explain();
}

TEST_P(finished_gradients, have_the_bits_of_an_eager_run) {
  nn::parameter_set other{here.memory, here.work, three_of_them(), 3};
  nn::gradient_finish eagerly{other, here.memory, here.work};
  replay_cache off{here.opened, {.record = false}};
  for (unsigned round = 0; round < 4; ++round) {
    const float scale = round % 2 == 0 ? 1024.0F : 7.0F;
    const float most = 0.1F * static_cast<float>(round);
    give_gradients(round, scale);
    give_gradients(round, scale, other);
    finish.run(here.work, cache, scale, most);
    eagerly.run(here.work, off, scale, most);
    EXPECT_TRUE(same_bits(all_gradients(), read_back<float>(here.work, other.gradients())));
    EXPECT_TRUE(same_bits(read_back<float>(here.work, finish.facts()),
                          read_back<float>(here.work, eagerly.facts())));
  }
  EXPECT_EQ(cache.counts().replayed, 3U);
  EXPECT_EQ(off.counts().eager, 4U);
}

TEST_P(finished_gradients, that_are_short_are_not_lengthened) {
  give_gradients(1, 1.0F);
  const std::vector<float> before = all_gradients();
  finish.run(here.work, cache, 1, 1e4F);
  EXPECT_TRUE(same_bits(all_gradients(), before));
  finish.run(here.work, cache, 1, 0);
  EXPECT_TRUE(same_bits(all_gradients(), before));
}

// What lies in a buffer counts only while has_grad.
TEST_P(finished_gradients, are_those_that_are_there) {
  give_gradients(1, 1.0F);
  upload(here.work, std::vector<float>(15, std::nanf("")), elements_of<float>(set[1].grad));
  set[1].has_grad = false;
  const std::vector<float> a = gradient(0);
  const std::vector<float> c = gradient(2);
  double squares = 0;
  for (const float one : a) squares += std::pow(static_cast<double>(one), 2);
  for (const float one : c) squares += std::pow(static_cast<double>(one), 2);
  finish.run(here.work, cache, 2);
  const nn::gradient_facts found = finish.read(here.work);
  EXPECT_TRUE(found.finite);
  EXPECT_NEAR(static_cast<double>(found.norm), std::sqrt(squares) / 2, 1e-6);
  EXPECT_EQ(gradient(0)[3], a[3] / 2);
  EXPECT_EQ(gradient(2)[0], c[0] / 2);
  for (const float one : gradient(1)) EXPECT_TRUE(std::isnan(one));
}

TEST_P(finished_gradients, of_another_set_of_parameters_have_a_recording_of_their_own) {
  for (unsigned round = 0; round < 3; ++round) {
    give_gradients(round, 1.0F);
    finish.run(here.work, cache, 2);
    set[0].has_grad = false;
    finish.run(here.work, cache, 2);
  }
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 4U);
}

// An overflow: told, and nothing is changed; the next window goes on.
TEST_P(finished_gradients, that_are_not_finite_are_left_as_they_came) {
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    for (std::size_t i = 0; i < set.size(); ++i) {
      give_gradients(1, 1024.0F);
      std::vector<float> spoiled = gradient(i);
      spoiled.back() = bad;
      upload(here.work, spoiled, elements_of<float>(set[i].grad));
      const std::vector<float> before = all_gradients();
      finish.run(here.work, cache, 1024, 1);
      const nn::gradient_facts found = finish.read(here.work);
      EXPECT_FALSE(found.finite);
      EXPECT_FALSE(std::isfinite(found.norm));
      EXPECT_TRUE(same_bits(all_gradients(), before));
    }
    give_gradients(2, 1024.0F);
    finish.run(here.work, cache, 1024, 1);
    EXPECT_TRUE(finish.read(here.work).finite);
  }
}

TEST_P(finished_gradients, are_none_where_no_parameter_has_one) {
  EXPECT_EQ(finish.read(here.work).norm, 0.0F) << "before the first run";
  EXPECT_TRUE(finish.read(here.work).finite);
  give_gradients(1, infinity);
  finish.run(here.work, cache, 1, 1);
  EXPECT_FALSE(finish.read(here.work).finite);
  set.drop_gradients();
  finish.run(here.work, cache, 1, 1);
  EXPECT_EQ(finish.read(here.work).norm, 0.0F);
  EXPECT_TRUE(finish.read(here.work).finite);
  EXPECT_EQ(cache.counts().captured + cache.counts().replayed + cache.counts().eager, 1U);
}

TEST_P(finished_gradients, refuse_what_cannot_be_divided_out_or_bounded) {
  give_gradients(1, 1.0F);
  const std::vector<float> before = all_gradients();
  const auto refused = [&](float scale, float most) {
    return refusal([&] { finish.run(here.work, cache, scale, most); });
  };
  EXPECT_EQ(refused(0, 1),
            "gradient_finish: a loss scale of 0 cannot be divided out; give one over 0");
  EXPECT_EQ(refused(infinity, 1),
            "gradient_finish: a loss scale of inf cannot be divided out; give one over 0");
  EXPECT_EQ(refused(1, -0.5F),
            "gradient_finish: -0.5 is no bound of a norm; give one over 0, or 0 for none");
  EXPECT_EQ(refused(1, infinity),
            "gradient_finish: inf is no bound of a norm; give one over 0, or 0 for none");
  EXPECT_NE(refused(std::nanf(""), 1), "nothing was refused");
  EXPECT_NE(refused(1, std::nanf("")), "nothing was refused");
  EXPECT_TRUE(same_bits(all_gradients(), before));
}

INSTANTIATE_TEST_SUITE_P(devices, finished_gradients, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
