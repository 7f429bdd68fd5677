// The loop by itself: what it yields and takes, and that nothing of one request is in another.
#include "workloads/denoise/sampler.hpp"

#include "reprise/loop/runner.hpp"
#include "tests/denoise/support.hpp"

namespace reprise {
namespace {

using denoise::denoiser;
using denoise::sampler;
using test::asked;

class sampler_on : public ::testing::TestWithParam<std::string> {
 protected:
  std::vector<float> values(const sampler::request& r) {
    std::vector<float> all(r.x.size());
    copy(work, read(r.x), write<float>{view<float>{all.data(), all.size()}});
    work.synchronize();
    return all;
  }

  test::small_model files;
  device opened = test::open_for_test(GetParam(), 1);
  stream work{opened};
  pool memory{opened, "test"};
  denoiser model{memory, work, files.folder()};
  sampler loop{work, model};
  replay_cache cache{opened};
  loop_runner runner{cache};
};

INSTANTIATE_TEST_SUITE_P(devices, sampler_on, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(sampler_on, yields_the_same_step_however_often_it_is_asked) {
  sampler::request r = loop.begin(memory, asked(2, {0, 1}));
  const auto first = loop.next(r);
  const auto again = loop.next(r);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->what, again->what);
  EXPECT_EQ(r.done, 0);
}

TEST_P(sampler_on, evaluates_and_goes_along_in_turns_until_all_time_has_passed) {
  sampler::request r = loop.begin(memory, asked(3, {0}));
  std::string steps;
  while (const auto call = loop.next(r)) {
    steps += call->what->name() + " ";
    ASSERT_TRUE(runner.step(work, loop, r));
  }
  EXPECT_EQ(steps, "evaluate euler evaluate euler evaluate euler ");
  EXPECT_FALSE(runner.step(work, loop, r)) << "it is finished";
}

TEST_P(sampler_on, only_the_last_stochastic_step_takes_no_noise) {
  denoise::image_request noisy = asked(3, {0});
  noisy.stochastic = true;
  sampler::request r = loop.begin(memory, noisy);
  std::string steps;
  while (const auto call = loop.next(r)) {
    steps += call->what->name() + " ";
    runner.step(work, loop, r);
  }
  EXPECT_EQ(steps, "evaluate stochastic evaluate stochastic evaluate euler ");
}

TEST_P(sampler_on, a_request_that_is_left_and_taken_up_again_goes_on_as_if_nothing_were) {
  sampler::request whole = loop.begin(memory, asked(4, {1}, 3));
  while (runner.step(work, loop, whole)) {
  }
  sampler::request left = loop.begin(memory, asked(4, {1}, 3));
  sampler::request other = loop.begin(memory, asked(4, {2}, 4));
  for (int i = 0; i < 3; ++i) runner.step(work, loop, left);
  while (runner.step(work, loop, other)) {
  }
  while (runner.step(work, loop, left)) {
  }
  EXPECT_TRUE(test::same_bits({values(left)}, {values(whole)}));
}

TEST_P(sampler_on, an_image_has_the_bits_it_has_without_its_neighbours_but_for_its_noise) {
  // The first image of a request of three begins with the same noise as a request of one.
  sampler::request one = loop.begin(memory, asked(3, {2}, 8));
  sampler::request three = loop.begin(memory, asked(3, {2, 0, 1}, 8));
  while (runner.step(work, loop, one)) {
  }
  while (runner.step(work, loop, three)) {
  }
  std::vector<float> first = values(three);
  first.resize(static_cast<std::size_t>(model.config.pixels()));
  EXPECT_TRUE(test::same_bits({first}, {values(one)}));
}

TEST_P(sampler_on, a_loop_may_be_moved_on_by_the_runner_for_all_requests) {
  std::vector<sampler::request> requests;
  requests.push_back(loop.begin(memory, asked(2, {0})));
  requests.push_back(loop.begin(memory, asked(3, {1})));
  runner.run(work, loop, std::span{requests});
  EXPECT_EQ(requests[0].done, 2);
  EXPECT_EQ(requests[1].done, 3);
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 8U);
}

}  // namespace
}  // namespace reprise
