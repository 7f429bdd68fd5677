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

// Kernels alone, as the producers of taps are: another set before each launch, and nothing waited
// for.
TEST_F(cuda_change_in_flight, DISABLED_switches_kernels_for_later_launches_alone) {
  constexpr std::size_t kernels = 20, launches = 12, size = 1 << 16;
  for (unsigned turn = 0; turn < 6; ++turn) {
    const buffer<float> x{memory(), size, s()};
    const buffer<float> seen{memory(), launches * size, s()};
    fill(s(), write<float>{x}, 0.0F);
    std::vector<node_id> nodes;
    graph made = capture(s(), [&](stream_ref c) {
      for (std::size_t i = 0; i < kernels; ++i) {
        nodes.push_back(enqueue_kernel(
            c, "add", &add, add_arguments{x.all().data(), size, static_cast<float>(1U << i)}));
      }
    });
    executable replayed = made.instantiate(s());
    std::vector<unsigned> sets;
    for (unsigned launch = 0; launch < launches; ++launch) {
      const unsigned set = (launch * 2654435761U + turn * 40503U) >> 12;
      for (std::size_t i = 0; i < kernels; ++i) replayed.enable(nodes[i], (set >> i & 1) != 0);
      sets.push_back(set & ((1U << kernels) - 1));
      fill(s(), write<float>{x}, 0.0F);
      replayed.launch(s());
      copy(s(), read<float>{x}, write<float>{seen.all().subview(launch * size, size)});
    }
    std::vector<float> host(launches * size);
    copy(s(), read<float>{seen}, write<float>{view<float>{host.data(), host.size()}});
    s().synchronize();
    for (unsigned launch = 0; launch < launches; ++launch) {
      for (std::size_t i = 0; i < size; i += 4099) {
        ASSERT_EQ(host[launch * size + i], static_cast<float>(sets[launch]))
            << turn << " " << launch;
      }
    }
  }
}

// Four processes at a time, so many each.
void expect_sound_in_processes(const char* which, int each) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string one = fmt::format(
      "'{}' --gtest_brief=1 --gtest_also_run_disabled_tests "
      "--gtest_filter='cuda_change_in_flight.DISABLED_{}' >/dev/null 2>&1 || exit 1",
      self, which);
  const std::string all = fmt::format(
      "p() {{ i=0; while [ $i -lt {} ]; do {}; i=$((i + 1)); done; }}; "
      "p & a=$!; p & b=$!; p & c=$!; p & d=$!; "
      "wait $a && wait $b && wait $c && wait $d",
      each, one);
  EXPECT_EQ(std::system(all.c_str()), 0)
      << "a process has lost its device, or was given wrong values";
}

TEST_F(cuda_change_in_flight, is_sound_in_processes_that_share_the_card) {
  expect_sound_in_processes("leaves_what_was_launched_as_it_was", 12);
}

// REPRISE_PROCESSES=100 is the long form, of 400.
TEST_F(cuda_change_in_flight, of_kernels_alone_is_sound_in_processes_that_share_the_card) {
  const char* const many = std::getenv("REPRISE_PROCESSES");
  expect_sound_in_processes("switches_kernels_for_later_launches_alone",
                            many == nullptr ? 6 : std::atoi(many));
}

}  // namespace
}  // namespace reprise::test
