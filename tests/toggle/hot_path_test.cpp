// What a session adds to a launch: no call of the device, and no allocation.
#include "tests/replay/counted_new.hpp"
#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

constexpr std::size_t launches = 1000;

class hot_path : public toggle_suite {
 protected:
  std::uint64_t allocations_of_launches(const executable& step) {
    for (int i = 0; i < 2; ++i) step.launch(s());  // what is made at first use
    const std::uint64_t before = allocations_of_this_thread();
    for (std::size_t i = 0; i < launches; ++i) step.launch(s());
    return allocations_of_this_thread() - before;
  }
};

TEST_P(hot_path, of_bound_and_of_foreign_executables_has_nothing_of_the_session) {
  if (GetParam().starts_with("sim")) GTEST_SKIP() << "its own work allocates as its seed says";
  const auto x = number(4);
  for (const toggle_mode mode :
       {toggle_mode::automatic, toggle_mode::variants, toggle_mode::host_lazy}) {
    SCOPED_TRACE(name_of(mode));
    const graph other = capture(s(), [&](stream_ref c) { fill(c, write<std::int32_t>{x}, 7); });
    const executable foreign = other.instantiate(s());
    toggle_session session{dev(), mode};
    const recorded of = record(session, s(), x, 4);
    const executable step = of.made.instantiate(s());
    const std::uint64_t alone = allocations_of_launches(step);
    session.bind(of.made, step);
    session.set(works({1}));
    step.launch(s());
    const calls_since now{*counts};
    EXPECT_LE(allocations_of_launches(step), alone);
    EXPECT_LE(allocations_of_launches(foreign), alone);
    EXPECT_EQ(now[seam_call::launch], 2 * launches + 4);
    EXPECT_EQ(now.all() - now[seam_call::enable], 2 * launches + 4);
    EXPECT_LE(now[seam_call::enable], 1U) << "the one that asked what is in the foreign one";
  }
}

INSTANTIATE_TEST_SUITE_P(devices, hot_path, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
