#include "reprise/replay/lease.hpp"

#include "tests/replay/support.hpp"

namespace reprise {
namespace {

class lease_test : public ::testing::TestWithParam<std::string> {
 protected:
  test::bench on{GetParam()};
  test::scaling doubling{on.memory, on.work, 2.0F};
  std::vector<float> values{1, 2, 3};
};

INSTANTIATE_TEST_SUITE_P(devices, lease_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(lease_test, an_output_reads_until_the_next_replay_overwrites_it) {
  replay_cache cache{on.opened};
  const step_result first = cache.run(on.work, doubling.what, {doubling.x.from_host(values)});
  const lease<float> held = first[doubling.y];
  EXPECT_EQ(test::read_back(on.work, held.get()), (std::vector<float>{2, 4, 6}));
  EXPECT_TRUE(held.valid());

  const step_result second = cache.run(on.work, doubling.what, {doubling.x.from_host(values)});
  EXPECT_FALSE(held.valid());
  try {
    (void)held.get();
    FAIL() << "a stale lease gave data";
  } catch (const stale_error& stale) {
    const std::string text = stale.what();
    const auto number = std::to_string(static_cast<std::uint64_t>(second.replay));
    EXPECT_NE(text.find("overwritten by run " + number + " of step 'scaling'"), std::string::npos)
        << text;
  }
  EXPECT_NO_THROW((void)second[doubling.y].get());
}

TEST_P(lease_test, a_clone_outlives_the_next_replay) {
  replay_cache cache{on.opened};
  const step_result first = cache.run(on.work, doubling.what, {doubling.x.from_host(values)});
  const buffer<float> kept = first[doubling.y].clone(on.work, on.memory);
  values = {10, 20, 30};
  cache.run(on.work, doubling.what, {doubling.x.from_host(values)});
  EXPECT_EQ(test::read_back<float>(on.work, kept.all()), (std::vector<float>{2, 4, 6}));
}

TEST_P(lease_test, a_lease_says_so_when_its_recording_is_gone) {
  std::optional<replay_cache> cache{std::in_place, on.opened};
  const step_result first = cache->run(on.work, doubling.what, {doubling.x.from_host(values)});
  const lease<float> held = first[doubling.y];
  cache.reset();
  EXPECT_THROW((void)held.get(), stale_error);
}

TEST_P(lease_test, another_steps_output_is_refused) {
  replay_cache cache{on.opened};
  test::adding other{on.memory, on.work, 3};
  const step_result done = cache.run(on.work, doubling.what, {doubling.x.from_host(values)});
  EXPECT_THROW((void)done[other.sum], usage_error);
}

TEST_P(lease_test, an_eager_output_is_stale_after_the_next_eager_run) {
  replay_cache cache{on.opened, {.record = false}};
  const step_result first = cache.run(on.work, doubling.what, {doubling.x.from_host(values)});
  const lease<float> held = first[doubling.y];
  EXPECT_EQ(test::read_back(on.work, held.get()), (std::vector<float>{2, 4, 6}));
  cache.run(on.work, doubling.what, {doubling.x.from_host(values)});
  EXPECT_THROW((void)held.get(), stale_error);
}

}  // namespace
}  // namespace reprise
