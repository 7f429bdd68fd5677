// T11: what a watched replay costs the host beside an unwatched one: no call of the device at all.
// An executable of its own: it replaces operator new.
#include "tests/replay/counted_new.hpp"
#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::calls_since;
using test::tapped_model;

class tap_hot_path : public test::monitored {};
INSTANTIATE_TEST_SUITE_P(devices, tap_hot_path, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(tap_hot_path, T11_planning_and_reserving_ask_the_device_nothing) {
  tapped_model model{8, 4};
  monitor_options how = small();
  how.ring_bytes = how.staging_bytes = 1U << 18;
  how.slots = 4096;
  how.flights = 64;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::last()});
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  const std::vector<request_rows> requests{{1, 0, 2, 0, 0}, {2, 2, 1, 1, 9}};
  std::vector<float> x = test::tap_bench::values(12, 1);
  const auto step = [&] {
    eye.plan_step(requests);
    on.run(cache, model, x);
  };
  for (int i = 0; i < 10; ++i) step();
  eye.flush();
  std::uint64_t allocated = 0;
  std::uint64_t synchronized = 0, queried = 0, copies = 0, launches = 0;
  for (int i = 0; i < 25; ++i) {
    const calls_since calls{*on.calls};
    const std::uint64_t before = test::allocations_of_this_thread();
    // Fewer than the slots that inputs from the host are staged in: a replay waits for one to be
    // free.
    for (int j = 0; j < 20; ++j) step();
    allocated += test::allocations_of_this_thread() - before;
    synchronized += calls[seam_call::synchronize];
    queried += calls[seam_call::query];
    copies += calls[seam_call::copy];
    launches += calls[seam_call::launch];
    eye.flush();
  }
  EXPECT_EQ(allocated, 0U);
  EXPECT_EQ(synchronized, 0U);
  EXPECT_EQ(queried, 0U);
  EXPECT_EQ(copies, 0U) << "a node brings the plan";
  EXPECT_EQ(launches, 500U);
}

}  // namespace
}  // namespace reprise
