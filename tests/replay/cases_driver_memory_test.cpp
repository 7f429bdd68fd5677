// The field's case about what the driver holds for a recording: it counts against the budget.
#include "reprise/device/forwarding.hpp"
#include "reprise/device/slab_store.hpp"
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class expensive_nodes final : public forwarding_device {
 public:
  static constexpr std::size_t each = std::size_t{10} << 10;
  using forwarding_device::forwarding_device;
  std::size_t bytes_per_node(place) override { return each; }
};

// A step of so many nodes, over a kilobyte of its own.
class long_step {
 public:
  explicit long_step(int nodes) : nodes_{nodes} {}
  step make() {
    return step{declared, [this](step_scope& run) {
                  const view<float> to = run.make(y, {256});
                  for (int i = 0; i < nodes_; ++i) fill(run, write<float>{to}, 1.0F);
                }};
  }
  signature declared{"long"};
  const output<float> y = declared.out<float>("y");

 private:
  int nodes_;
};

class driver_memory : public replay_case {};

REPRISE_ON_EACH_DEVICE(driver_memory);

TEST_P(driver_memory, R13_the_drivers_memory_counts_against_the_budget) {
  case_desk own{GetParam(),
                [](auto bare) { return std::make_unique<expensive_nodes>(std::move(bare)); }};
  byte_budget budget{50'000'000};
  {
    replay_cache cache{own.opened, {.budget = &budget}};
    long_step too_long{10'000};
    const step refused = too_long.make();
    const step_result done = cache.run(own.work, refused, {});
    EXPECT_EQ(done.how, ran::eager);
    ASSERT_EQ(done.why->rule, "budget");
    const std::string share = std::to_string(10'000 * expensive_nodes::each) + " executables";
    EXPECT_TRUE(has(done.why->breaches[0].actual, share)) << done.why->text();
    EXPECT_EQ(own.values_of(done[too_long.y].get()), floats(256, 1.0F));
    EXPECT_EQ(cache.run(own.work, refused, {}).why, done.why) << "and is not tried again";
    EXPECT_EQ(cache.counts().refused, 2U);
    EXPECT_EQ(budget.held(), 0U);
    EXPECT_LE(budget.most_held(), budget.limit());
  }
  own.work.synchronize();
  const std::size_t leased = device_ref{own.opened}.state().slabs->leased_bytes();
  replay_cache cache{own.opened, {.budget = &budget}};
  long_step shorter{100};
  const step fits = shorter.make();
  EXPECT_EQ(cache.run(own.work, fits, {}).how, ran::captured);
  EXPECT_EQ(cache.run(own.work, fits, {}).how, ran::replayed);
  const recording_bytes bytes = cache.report().recordings.front().bytes;
  EXPECT_EQ(bytes.executables, 100 * expensive_nodes::each);
  EXPECT_EQ(bytes.total(), bytes.buffers + bytes.workspaces + bytes.pinned + bytes.executables);
  EXPECT_EQ(budget.held(), bytes.total());
  EXPECT_EQ(cache.bytes().recordings, bytes.total());
  EXPECT_EQ(device_ref{own.opened}.state().slabs->leased_bytes() - leased,
            bytes.buffers + bytes.workspaces + cache.bytes().eager)
      << "as the device counts";
}

}  // namespace
}  // namespace reprise::test
