#include "reprise/replay/verifier.hpp"

#include "reprise/telemetry/log.hpp"
#include "tests/replay/support.hpp"

namespace reprise {
namespace {

class verifier_test : public ::testing::TestWithParam<std::string> {
 protected:
  verifier_test() {
    set_log_sink([this](std::string_view line) { log.emplace_back(line); });
  }
  ~verifier_test() override { set_log_sink({}); }

  test::bench on{GetParam()};
  std::vector<std::string> log;
  std::vector<float> ones{1, 1, 1};
};

INSTANTIATE_TEST_SUITE_P(devices, verifier_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(verifier_test, a_right_replay_passes_and_state_moves_once_per_run) {
  test::adding adder{on.memory, on.work, 3};
  const step what = adder.make();
  replay_cache cache{on.opened, {.verify = true}};
  for (int i = 0; i < 5; ++i) cache.run(on.work, what, {adder.x.from_host(ones)});
  EXPECT_EQ(test::read_back<float>(on.work, adder.total.all()), (std::vector<float>{5, 5, 5}));
  EXPECT_EQ(cache.verified()->steps, 4U);
  EXPECT_EQ(cache.verified()->unequal, 0U);
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 4U) << "the eager twin is no step of the caller's";
  EXPECT_EQ(cache.counts().eager, 0U);
  EXPECT_TRUE(log.empty());
}

// A body that bakes a host scalar is wrong on replay, and only this alarm can see it.
TEST_P(verifier_test, a_baked_scalar_is_found_in_the_output) {
  std::uint8_t baked = 1;
  signature declared{"baking"};
  const auto x = declared.in<float>("x", {any});
  const auto y = declared.out<std::uint8_t>("y");
  const step what{declared, [&](step_scope& run) { fill(run, write(run.make(y, {4})), baked); }};
  replay_cache cache{on.opened, {.verify = true}};
  cache.run(on.work, what, {x.from_host(ones)});
  cache.run(on.work, what, {x.from_host(ones)});
  EXPECT_EQ(cache.verified()->unequal, 0U);
  baked = 2;
  cache.run(on.work, what, {x.from_host(ones)});
  EXPECT_EQ(cache.verified()->unequal, 1U);
  EXPECT_NE(cache.verified()->first.find("step 'baking'"), std::string::npos);
  EXPECT_NE(cache.verified()->first.find("'y' from byte 0"), std::string::npos);
  cache.run(on.work, what, {x.from_host(ones)});
  EXPECT_EQ(cache.verified()->unequal, 2U);
  EXPECT_EQ(log.size(), 1U) << "logged once";
}

// The write that an eager run would not make must show too, so the state from before is put back.
TEST_P(verifier_test, a_write_that_only_the_replay_makes_is_found_in_the_state) {
  buffer<std::uint8_t> memory{on.memory, 8, on.work};
  fill(on.work, write(memory), std::uint8_t{0});
  std::size_t where = 0;
  signature declared{"straying"};
  const auto x = declared.in<float>("x", {any});
  declared.overwrites("memory", as_tensor(memory.all()));
  const step what{declared, [&](step_scope& run) {
                    fill(run, write<std::uint8_t>{memory.all().subview(where, 1)}, std::uint8_t{9});
                  }};
  replay_cache cache{on.opened, {.verify = true}};
  cache.run(on.work, what, {x.from_host(ones)});
  cache.run(on.work, what, {x.from_host(ones)});
  EXPECT_EQ(cache.verified()->unequal, 0U);
  where = 5;
  fill(on.work, write(memory), std::uint8_t{0});
  cache.run(on.work, what, {x.from_host(ones)});
  EXPECT_EQ(cache.verified()->unequal, 1U);
  EXPECT_NE(cache.verified()->first.find("'memory' from byte 0"), std::string::npos)
      << cache.verified()->first;
}

}  // namespace
}  // namespace reprise
