// A training step that is one recording has the bits of the same kernels launched plainly: losses,
// gradients, weights, the optimizer's state, random numbers.
#include "reprise/train/whole_step.hpp"

#include <functional>
#include <optional>
#include <utility>

#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "tests/nn/plain_network.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 6;
constexpr std::int64_t width = 10;
constexpr std::int64_t classes = 4;
constexpr unsigned steps = 5;

nn::parameter_specs all_parameters() {
  return nn::joined({nn::linear_parameters("in", width, width), nn::norm_parameters("norm", width),
                     nn::linear_parameters("idle", width, width),
                     nn::linear_parameters("out", classes, width)});
}

class whole_steps : public on_each_device {
 protected:
  // All but "idle", which no layer has.
  nn::sequence module() {
    nn::sequence made{"module"};
    made.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
    made.add(nn::layer_norm{set.at("norm.gain"), set.at("norm.bias")});
    made.add(nn::gelu{}).add(nn::dropout{0.25F, counter});
    return made.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
  }

  plain_network plain_module() {
    plain_network made;
    made.add(plain_linear(plain[0], &plain[1]));
    made.add(plain_layer_norm(plain[2], plain[3], 1e-5F));
    made.add(plain_gelu());
    made.add(plain_dropout(0.25F, plain_counter));
    made.add(plain_linear(plain[6], &plain[7]));
    return made;
  }

  void copy_parameters() {
    for (const nn::stored_parameter& one : set.to_host(here.work)) {
      plain.push_back({desk.upload(one.values), desk.take<float>(one.values.size())});
    }
  }

  void expect_the_same(unsigned step) {
    for (std::size_t i = 0; i < set.size(); ++i) {
      EXPECT_TRUE(same_bits(read_back<float>(here.work, elements_of<const float>(set[i].value)),
                            read_back<float>(here.work, plain[i].value->all())))
          << set.name(i) << ", step " << step;
      if (!plain[i].has_grad) {
        EXPECT_FALSE(set[i].has_grad) << set.name(i);
        continue;
      }
      EXPECT_TRUE(same_bits(gradient_of_parameter(here, set[i]),
                            read_back<float>(here.work, plain[i].grad->all())))
          << "gradient of " << set.name(i) << ", step " << step;
    }
    EXPECT_EQ(counter.next(), plain_counter.next());
  }

  std::vector<std::int32_t> some_targets(unsigned step) const {
    std::vector<std::int32_t> targets(m);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] = static_cast<std::int32_t>((i + step) % classes);
    }
    return targets;
  }

  // Steps on batches of their own, from the host, through a cache of these options.
  step_counts train(const cache_options& options) {
    copy_parameters();
    nn::adamw updates{set, here.memory, here.work, {.rate = 0.01F, .weight_decay = 0.1F}};
    whole_step whole{module(), loss_of(nn::softmax_cross_entropy{}), updates.part(), here.memory,
                     here.work};
    replay_cache cache{here.work.device(), options};
    plain_network other = plain_module();
    std::vector<plain_parameter*> trained;
    for (const std::size_t i : {0, 1, 2, 3, 6, 7}) trained.push_back(&plain[i]);
    plain_adamw plain_updates{desk, trained, 0.01F, 0.1F};
    for (unsigned step = 0; step < steps; ++step) {
      std::vector<float> x = numbers(m * width, step);
      std::vector<std::int32_t> targets = some_targets(step);
      const step_result ran =
          whole.run(here.work, cache,
                    {as_tensor(view<float>{x.data(), x.size()}, {m, width}),
                     as_tensor(view<std::int32_t>{targets.data(), targets.size()}, {m}), true});
      const std::vector<float> loss = read_back<float>(here.work, ran[whole.loss()].get());

      for (plain_parameter* one : trained) one->has_grad = false;
      const plain_call call = other.forward(desk, {desk.upload(x), m, width});
      const plain_loss expected = plain_cross_entropy(desk, call.y, targets, 1.0F);
      other.backward(desk, call, expected.dx);
      plain_updates.update(desk);
      EXPECT_TRUE(same_bits(loss, read_back<float>(here.work, expected.loss->all())));
      expect_the_same(step);
    }
    EXPECT_EQ(updates.updates(), steps);
    return cache.counts();
  }

  nn::parameter_set set{here.memory, here.work, all_parameters(), 3};
  philox_counter counter{9};
  philox_counter plain_counter{9};
  plain_desk desk{here.memory, here.work};
  std::vector<plain_parameter> plain;
};

TEST_P(whole_steps, have_the_bits_of_kernels_that_are_launched_plainly) {
  const step_counts counts = train({});
  EXPECT_EQ(counts.captured, 1U);
  EXPECT_EQ(counts.replayed, steps - 1);
  EXPECT_EQ(counts.eager, 0U);
}

TEST_P(whole_steps, have_the_same_bits_as_one_chain) {
  const step_counts counts = train({.branches = false});
  EXPECT_EQ(counts.captured, 1U);
  EXPECT_EQ(counts.replayed, steps - 1);
}

TEST_P(whole_steps, have_the_same_bits_eagerly) {
  EXPECT_EQ(train({.record = false}).eager, steps);
}

// What a backward of an earlier forward would read is of another version.
TEST_P(whole_steps, move_the_versions_of_what_they_update) {
  nn::sgd updates{set, here.memory, here.work, {}};
  whole_step whole{module(), loss_of(nn::softmax_cross_entropy{}), updates.part(), here.memory,
                   here.work};
  replay_cache cache{here.work.device()};
  const std::uint64_t trained = set.at("in.weight").version.value();
  const std::uint64_t idle = set.at("idle.weight").version.value();
  std::vector<float> x = numbers(m * width, 1);
  std::vector<std::int32_t> targets = some_targets(1);
  whole.run(here.work, cache,
            {as_tensor(view<float>{x.data(), x.size()}, {m, width}),
             as_tensor(view<std::int32_t>{targets.data(), targets.size()}, {m}), true});
  EXPECT_NE(set.at("in.weight").version.value(), trained);
  EXPECT_EQ(set.at("idle.weight").version.value(), idle);
}

TEST_P(whole_steps, refuse_a_module_of_other_parameters) {
  nn::parameter_set other{here.memory, here.work, nn::linear_parameters("a", width, width), 1};
  nn::sgd updates{other, here.memory, here.work, {}};
  try {
    const whole_step whole{module(), loss_of(nn::softmax_cross_entropy{}), updates.part(),
                           here.memory, here.work};
    FAIL() << "it was made";
  } catch (const usage_error& refused) {
    EXPECT_STREQ(refused.what(),
                 "training step: '0 linear.weight' of module 'module' is not of the set that the "
                 "update is over; give the optimizer of its parameters");
  }
}

INSTANTIATE_TEST_SUITE_P(devices, whole_steps, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
