// Executables that are changed while launches of them are in flight, in processes that share a
// card: the driver takes turns among them, and launches wait in the middle.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_change_in_flight = on_a_gpu;

// Of the processes that the next test starts; by itself it shows little.
TEST_F(cuda_change_in_flight, DISABLED_leaves_what_was_launched_as_it_was) {
  const stream side{gpu()};
  for (int turn = 0; turn < 4; ++turn) {
    const buffer<int> x{memory(), 64, s()};
    const buffer<int> y{memory(), 64, s()};
    const pinned<int> host{gpu(), 3 * 64};
    fill(s(), write<int>{x}, 9);
    event forked{gpu()};
    event joined{gpu()};
    node_id filled = node_id::none;
    std::vector<graph> made;
    const auto view_of = [&](int launch) {
      return write<int>{view<int>{host.data() + 64 * launch, 64}};
    };
    made.push_back(capture(s(), [&](stream_ref c) {
      filled = fill(c, write<int>{x}, 1);
      forked.record(c);
      forked.wait(side);
      copy(side, read<int>{x}, write<int>{y});
      joined.record(side);
      joined.wait(c);
      copy(c, read<int>{y}, view_of(0));
    }));
    executable replayed = made[0].instantiate(s());
    const auto launch_and_keep = [&](int launch) {
      replayed.launch(s());
      copy(s(), read<int>{view<const int>{host.data(), 64}}, write<int>{y});
      copy(s(), read<int>{y}, view_of(launch));
    };
    launch_and_keep(1);
    replayed.enable(filled, false);
    fill(s(), write<int>{x}, 5);
    launch_and_keep(2);
    replayed.change_fill(filled, write<int>{x}, 3);
    replayed.enable(filled, true);
    replayed.launch(s());
    s().synchronize();
    ASSERT_EQ(host[64], 1) << turn;
    ASSERT_EQ(host[128], 5) << turn;
    ASSERT_EQ(host[0], 3) << turn;
  }
}

TEST_F(cuda_change_in_flight, is_sound_in_processes_that_share_the_card) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string one = fmt::format(
      "'{}' --gtest_brief=1 --gtest_also_run_disabled_tests "
      "--gtest_filter='cuda_change_in_flight.DISABLED_*' >/dev/null 2>&1 || exit 1",
      self);
  // Four at a time, twelve each.
  const std::string all = fmt::format(
      "p() {{ for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {}; done; }}; "
      "p & a=$!; p & b=$!; p & c=$!; p & d=$!; "
      "wait $a && wait $b && wait $c && wait $d",
      one);
  EXPECT_EQ(std::system(all.c_str()), 0)
      << "a process has lost its device, or was given wrong values";
}

}  // namespace
}  // namespace reprise::test
