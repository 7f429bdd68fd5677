// Gradients that a part hands out where they lie (gradients::moved): the next forward and the next
// backward of the part move those that are still alive, so whoever keeps them keeps their bits.
#include "reprise/ops/add.hpp"
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

floats sum_of(const std::vector<floats>& all) {
  floats sum = all.front();
  for (std::size_t i = 1; i < all.size(); ++i) {
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += all[i][e];
  }
  return sum;
}

class live_gradients : public training_case {
 protected:
  live_gradients() {
    run.start(s());
    (void)model.run({.seed = 100});
    (void)plain.run({.seed = 100});
  }

  // On the device, in their order, when all micro-batches are done.
  floats added_up(const std::vector<tensor<float>>& kept) {
    const tensor<float> sum = desk.made(desk.host(kept.front()), kept.front().shape());
    for (std::size_t i = 1; i < kept.size(); ++i) {
      launch(s(), add, read<float>{sum.get()}, read<float>{kept[i].get()}, write<float>{sum.get()});
    }
    return desk.host(sum);
  }
  graphed_model::under_way forward_of(unsigned seed) {
    auto now = model.begin({.seed = seed});
    model.forward(now);
    return now;
  }
  graphed_model::under_way step_of(unsigned seed) {
    auto now = forward_of(seed);
    model.compute_loss(now);
    (void)model.backward(now);
    return now;
  }
  // A gradient that is kept, where it was lent, and its bits.
  struct kept_gradient {
    tensor<float> at;
    const float* lent;
    floats bits;

    bool is_moved() const { return at.get().data() != lent; }
  };
  static kept_gradient kept(const tensor<float>& at, const floats& bits) {
    return {at, at.get().data(), bits};
  }
  // Of the trunk, then of each head.
  std::vector<kept_gradient> step_and_keep(unsigned seed) {
    const auto now = step_of(seed);
    const made_by expected = plain.run({.seed = seed});
    std::vector<kept_gradient> all{kept(now.dx, expected.dx)};
    for (const std::size_t i : {0U, 1U}) {
      all.push_back(kept(now.dfeatures[i], expected.dfeatures[i]));
    }
    for (const kept_gradient& one : all) EXPECT_BITS(desk.host(one.at), one.bits);
    return all;
  }

  plain_model plain{desk};
  graphed_model model{desk};
  training_run run{model.parts()};
};

REPRISE_ON_EACH_DEVICE(live_gradients);

TEST_P(live_gradients, of_a_network_are_added_up_behind_a_window) {
  std::vector<tensor<float>> all;
  std::vector<floats> expected;
  for (unsigned i = 0; i < 4; ++i) {
    all.push_back(step_of(i).dx);
    expected.push_back(plain.run({.seed = i}).dx);
  }
  EXPECT_EQ(model.trunk.counts().calls.backward_replay, 4U);
  EXPECT_BITS(added_up(all), sum_of(expected));
}

TEST_P(live_gradients, of_heads_are_added_up_behind_a_window) {
  std::array<std::vector<tensor<float>>, 2> all;
  std::array<std::vector<floats>, 2> expected;
  for (unsigned i = 0; i < 4; ++i) {
    const auto now = step_of(i);
    const made_by plainly = plain.run({.seed = i});
    for (const std::size_t g : {0U, 1U}) {
      all[g].push_back(now.dfeatures[g]);
      expected[g].push_back(plainly.dfeatures[g]);
    }
  }
  for (const std::size_t g : {0U, 1U}) {
    EXPECT_EQ(model.heads.counts(g).calls.backward_replay, 4U);
    EXPECT_BITS(added_up(all[g]), sum_of(expected[g])) << "group " << g;
  }
}

TEST_P(live_gradients, have_memory_of_their_own_right_behind_the_next_forward) {
  const std::vector<kept_gradient> all = step_and_keep(1);
  const calls_since before{*desk.calls};
  const auto now = forward_of(2);
  for (const kept_gradient& one : all) {
    EXPECT_TRUE(one.is_moved());
    EXPECT_BITS(desk.host(one.at), one.bits);
  }
  EXPECT_EQ(model.trunk.counts().calls.forward_replay, 2U);
}

TEST_P(live_gradients, keep_their_bits_behind_the_next_backward) {
  const std::vector<kept_gradient> first = step_and_keep(1);
  const std::vector<kept_gradient> second = step_and_keep(2);
  for (const kept_gradient& one : first) {
    EXPECT_TRUE(one.is_moved());
    EXPECT_BITS(desk.host(one.at), one.bits);
  }
  for (std::size_t i = 0; i < second.size(); ++i) {
    EXPECT_EQ(second[i].at.get().data(), first[i].lent) << "where the recording writes again";
  }
}

TEST_P(live_gradients, that_are_dropped_in_time_are_copied_by_nobody) {
  const auto copies_of_a_forward = [&](unsigned seed) {
    auto now = model.begin({.seed = seed});
    const calls_since before{*desk.calls};
    model.forward(now);
    return before[seam_call::copy];
  };
  std::uint64_t copies = 0;
  {
    const std::vector<kept_gradient> all = step_and_keep(1);
    copies = copies_of_a_forward(2);
    EXPECT_EQ(copies, 3U) << "one for each";
  }
  run.batch_start();
  EXPECT_EQ(copies_of_a_forward(3), 0U);
}

TEST_P(live_gradients, of_a_loss_keep_their_bits_over_the_next_call) {
  const auto first = step_of(1);
  const made_by expected = plain.run({.seed = 1});
  const float* const lent = first.loss->gradients[0].get().data();
  const auto second = step_of(2);
  const made_by then = plain.run({.seed = 2});
  EXPECT_NE(first.loss->gradients[0].get().data(), lent);
  EXPECT_EQ(second.loss->gradients[0].get().data(), lent);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_BITS(desk.host(first.loss->gradients[i]), expected.gradients[i]);
    EXPECT_BITS(desk.host(second.loss->gradients[i]), then.gradients[i]);
    EXPECT_BITS(desk.host(first.loss->terms[i]), expected.terms[i]);
  }
  EXPECT_BITS(desk.host(first.loss->loss), expected.loss);
}

TEST_P(live_gradients, outlive_the_recording_that_lent_them) {
  const std::vector<kept_gradient> all = step_and_keep(1);
  run.end();
  for (const kept_gradient& one : all) EXPECT_BITS(desk.host(one.at), one.bits);
}

TEST_P(live_gradients, that_are_cloned_have_memory_of_their_own_at_once) {
  graphed_model cloning{desk, {.on = true, .returned = gradients::cloned}};
  training_run other{cloning.parts()};
  other.start(s());
  (void)cloning.run({.seed = 100});
  auto first = cloning.begin({.seed = 1});
  cloning.forward(first);
  cloning.compute_loss(first);
  (void)cloning.backward(first);
  const made_by expected = plain.run({.seed = 1});
  const float* const at = first.dx.get().data();
  (void)cloning.run({.seed = 2});
  EXPECT_EQ(first.dx.get().data(), at);
  EXPECT_BITS(desk.host(first.dx), expected.dx);
  EXPECT_BITS(desk.host(first.loss->gradients[0]), expected.gradients[0]);
}

}  // namespace
}  // namespace reprise::test
