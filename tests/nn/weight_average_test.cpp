// The average of weights: its formula, that recording it leaves no trace, and its bits.
#include "reprise/nn/weight_average.hpp"

#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "reprise/device/faulty.hpp"
#include "reprise/sim/device.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

class weight_averages : public on_each_device {
 protected:
  nn::parameter_set set{
      here.memory,
      here.work,
      {{"a", {70}, nn::uniform{1}}, {"b", {3, 5}, nn::uniform{1}}, {"c", {1}, nn::uniform{1}}},
      3};
  replay_cache cache{here.opened};

  std::vector<float> weights() { return read_back<float>(here.work, set.values()); }
  std::vector<float> values_of(const nn::weight_average& average) {
    return read_back<float>(here.work, average.values());
  }
  // As an update moves them.
  void move_weights(unsigned seed) {
    for (std::size_t i = 0; i < set.size(); ++i) {
      upload(here.work, numbers(set[i].value.shape.count(), seed + static_cast<unsigned>(i)),
             elements_of<float>(set[i].value));
    }
  }
};

TEST_P(weight_averages, begin_as_a_copy_and_are_their_formula_by_one_recording) {
  nn::weight_average average{set, here.memory, here.work};
  std::vector<float> expected = weights();
  EXPECT_TRUE(same_bits(values_of(average), expected));
  for (unsigned step = 0; step < 5; ++step) {
    move_weights(10 * step);
    const float decay = 0.5F + 0.09F * static_cast<float>(step);
    average.update(here.work, cache, decay);
    const std::vector<float> now = weights();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const float kept = decay * expected[i];
      const float moved = (1.0F - decay) * now[i];
      expected[i] = kept + moved;
    }
    EXPECT_TRUE(same_bits(values_of(average), expected)) << step;
  }
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 4U) << cache.explain();
}

TEST_P(weight_averages, have_the_bits_of_eager_runs) {
  nn::weight_average replayed{set, here.memory, here.work};
  nn::weight_average eager{set, here.memory, here.work};
  replay_cache off{here.opened, {.record = false}};
  for (unsigned step = 0; step < 4; ++step) {
    move_weights(10 * step);
    replayed.update(here.work, cache, 0.9F);
    eager.update(here.work, off, 0.9F);
    EXPECT_TRUE(same_bits(values_of(replayed), values_of(eager))) << step;
  }
  EXPECT_EQ(cache.counts().replayed, 3U);
  EXPECT_EQ(off.counts().eager, 4U);
}

TEST_P(weight_averages, are_read_into_a_set_of_the_same_parameters) {
  nn::weight_average average{set, here.memory, here.work};
  move_weights(1);
  average.update(here.work, cache, 0.5F);
  nn::parameter_set validated{
      here.memory,
      here.work,
      {{"a", {70}, nn::uniform{1}}, {"b", {3, 5}, nn::uniform{1}}, {"c", {1}, nn::uniform{1}}},
      9};
  copy(here.work, read<float>{average.values()}, write<float>{validated.values()});
  EXPECT_TRUE(same_bits(read_back<float>(here.work, validated.values()), values_of(average)));
  EXPECT_EQ(validated.to_host(here.work)[2].values[0], values_of(average)[set.begin(2)]);
}

TEST_P(weight_averages, go_on_from_what_was_stored) {
  nn::weight_average average{set, here.memory, here.work};
  move_weights(1);
  average.update(here.work, cache, 0.5F);
  const std::vector<float> stored = values_of(average);
  move_weights(2);
  average.update(here.work, cache, 0.5F);
  const std::vector<float> expected = values_of(average);
  nn::weight_average other{set, here.memory, here.work};
  upload(here.work, stored, other.values());
  other.update(here.work, cache, 0.5F);
  EXPECT_TRUE(same_bits(values_of(other), expected));
}

TEST_P(weight_averages, refuse_a_decay_that_is_none) {
  nn::weight_average average{set, here.memory, here.work};
  move_weights(1);
  const std::vector<float> before = values_of(average);
  EXPECT_EQ(refusal([&] { average.update(here.work, cache, 1.5F); }),
            "weight_average: a decay of 1.5 averages nothing; give one of 0 at least and 1 at "
            "most");
  EXPECT_NE(refusal([&] { average.update(here.work, cache, -0.1F); }), "nothing was refused");
  EXPECT_NE(refusal([&] { average.update(here.work, cache, NAN); }), "nothing was refused");
  EXPECT_TRUE(same_bits(values_of(average), before));
}

// The first update, whose recording fails: it runs eagerly, on the average as it was.
TEST(a_weight_average, moves_once_though_its_recording_fails) {
  for (std::uint64_t kernel = 1; kernel <= 2; ++kernel) {
    const auto plan = std::make_shared<fault_plan>();
    auto implementation = faulty(sim::open_cpu(1), plan);
    auto table = resolve_kernels(builtin_kernels(), implementation->traits());
    const device opened{std::move(implementation), std::move(table)};
    stream work{opened};
    pool memory{opened, "test"};
    nn::parameter_set set{memory, work, {{"a", {8}, nn::constant{3}}}, 3};
    nn::weight_average average{set, memory, work};
    upload(work, std::vector<float>(8, 7.0F), elements_of<float>(set[0].value));
    replay_cache cache{opened};
    plan->fail_call(seam_call::kernel, kernel);
    average.update(work, cache, 0.75F);
    EXPECT_TRUE(plan->fired());
    EXPECT_EQ(cache.counts().eager, 1U) << cache.explain();
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(read_back<float>(work, average.values())[i], 0.75F * 3 + 0.25F * 7);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(devices, weight_averages, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
