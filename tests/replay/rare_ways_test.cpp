// Fault points and landmarks of this room: each rare way that is chosen is taken and gives the same
// results, and each place that a good simulation has to reach is told of.
#include "reprise/device/forwarding.hpp"
#include "reprise/sim/device.hpp"
#include "tests/replay/support.hpp"
#include "tests/support/listening.hpp"

namespace reprise::test {
namespace {

class rare_ways_of_a_replay : public testing::Test {
 protected:
  std::vector<float> total() { return read_back<float>(on.work, adder.total.all()); }

  bench on{"cpu"};
  adding adder{on.memory, on.work, 3};
  step what = adder.make();
  std::vector<float> ones{1, 1, 1};
};

TEST_F(rare_ways_of_a_replay, the_recorder_waits_for_its_warm_up) {
  const listening heard{{"recorder: waits for its warm-up"}};
  replay_cache cache{on.opened};
  EXPECT_EQ(cache.run(on.work, what, {adder.x.from_host(ones)}).how, ran::captured);
  EXPECT_EQ(heard["recorder: waits for its warm-up"], 1U);
  EXPECT_EQ(total(), ones);
}

TEST_F(rare_ways_of_a_replay, the_input_ring_waits_for_a_free_slot_once_a_lap) {
  const std::string_view point = "slot ring: waits for a slot that is free";
  const listening heard{{std::string{point}}};
  replay_cache cache{on.opened};
  cache.run(on.work, what, {adder.x.from_host(ones)});
  EXPECT_EQ(heard[point], 1U) << "the first replay is that of the recording";
  const std::uint64_t waits = (*on.calls)[seam_call::synchronize];
  for (std::size_t i = 0; i < 2 * input_ring::most_slots; ++i) {
    cache.run(on.work, what, {adder.x.from_host(ones)});
  }
  EXPECT_EQ(heard[point], 3U);
  EXPECT_EQ((*on.calls)[seam_call::synchronize] - waits, 2U);
  EXPECT_EQ(total()[0], 1.0F + 2.0F * input_ring::most_slots);
}

TEST_F(rare_ways_of_a_replay, staging_waits_for_a_half_that_is_free) {
  const std::string_view point = "staging: waits for a half that is free";
  const listening heard{{std::string{point}}};
  replay_cache cache{on.opened, {.record = false}};
  for (std::size_t i = 0; i < 2 * staging::most_slots + 1; ++i) {
    cache.run(on.work, what, {adder.x.from_host(ones)});
  }
  EXPECT_EQ(heard[point], 2U);
  EXPECT_EQ(heard["staging: waited for a half"], 0U);
  EXPECT_EQ(total()[0], 2.0F * staging::most_slots + 1.0F);
}

// Its events have never passed when they are asked.
class never_finished final : public forwarding_device {
 public:
  using forwarding_device::forwarding_device;
  bool finished(event_id, place) override { return false; }
};

TEST_F(rare_ways_of_a_replay, staging_that_waited_is_a_landmark) {
  auto slow = std::make_unique<never_finished>(sim::open_cpu(1));
  auto table = resolve_kernels(builtin_kernels(), slow->traits());
  const device opened{std::move(slow), std::move(table)};
  const stream work{opened};
  pool memory{opened};
  adding later{memory, work, 3};
  const step added = later.make();
  const listening heard;
  replay_cache cache{opened, {.record = false}};
  for (std::size_t i = 0; i < staging::most_slots + 1; ++i) {
    cache.run(work, added, {later.x.from_host(ones)});
  }
  EXPECT_EQ(heard["staging: waited for a half"], 1U);
  work.synchronize();
}

TEST_F(rare_ways_of_a_replay, a_breach_a_crossing_and_a_stale_lease_are_landmarks) {
  scaling scaled{on.memory, on.work, 2.0F};
  const stream other{on.opened};
  const listening heard;
  replay_cache cache{on.opened};
  cache.run(on.work, scaled.what, {scaled.x.from_host(ones)});
  const step_result done = cache.run(on.work, scaled.what, {scaled.x.from_host(ones)});
  const lease<float> held = done[scaled.y];
  EXPECT_EQ(heard["step: crossed streams"], 0U);
  cache.run(other, scaled.what, {scaled.x.from_host(ones)});
  EXPECT_EQ(heard["step: crossed streams"], 1U);
  EXPECT_EQ(heard["lease: gone stale"], 0U);
  EXPECT_THROW((void)held.get(), stale_error);
  EXPECT_EQ(heard["lease: gone stale"], 1U);
  EXPECT_EQ(heard["contract: breached"], 0U);
  scaled.weight.version.bump();
  cache.run(other, scaled.what, {scaled.x.from_host(ones)});
  EXPECT_EQ(heard["contract: breached"], 1U);
  other.synchronize();
}

TEST_F(rare_ways_of_a_replay, a_recorder_that_gives_up_is_a_landmark) {
  signature declared{"synchronising"};
  const step refused{declared, [](step_scope& run) { stream_ref{run}.synchronize(); }};
  const listening heard;
  replay_cache cache{on.opened};
  EXPECT_EQ(cache.run(on.work, refused, {}).how, ran::eager);
  EXPECT_EQ(heard["recorder: gave up and ran eagerly"], 1U);
}

}  // namespace
}  // namespace reprise::test
