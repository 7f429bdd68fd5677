// Who holds the memory of a device.
#include "reprise/device/memory_report.hpp"

#include <algorithm>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

class memory_report_on : public on_each_device {
 protected:
  const pool_figures* row(const memory_report& report, std::string_view label) const {
    const auto found = std::ranges::find(report.pools, label, &pool_figures::label);
    return found == report.pools.end() ? nullptr : &*found;
  }
};

TEST_P(memory_report_on, has_a_row_for_each_pool_while_it_lives) {
  {
    pool weights{dev(), "weights"};
    const block held{weights, 100 * kib, s()};
    const memory_report report = report_memory(dev());
    const pool_figures* const figures = row(report, "weights");
    ASSERT_NE(figures, nullptr);
    EXPECT_EQ(figures->bytes, weights.bytes());
    EXPECT_EQ(figures->used, weights.used());
    EXPECT_GE(figures->used, 100 * kib);
  }
  EXPECT_EQ(row(report_memory(dev()), "weights"), nullptr);
}

TEST_P(memory_report_on, counts_pinned_memory_idle_slabs_and_the_device) {
  const memory_report before = report_memory(dev());
  const pinned<std::uint8_t> host{dev(), 4000};
  { const block gone{*std::make_unique<pool>(dev(), "short"), 64 * kib, s()}; }
  const memory_report report = report_memory(dev());
  EXPECT_EQ(report.pinned, before.pinned + 4000);
  EXPECT_EQ(report.idle_slabs, idle());
  EXPECT_GT(report.idle_slabs, before.idle_slabs);
  EXPECT_GE(report.device.total, report.device.free);
}

TEST_P(memory_report_on, estimates_executables_by_their_nodes) {
  EXPECT_EQ(report_memory(dev()).executables_estimate, 0U);
  const auto x = filled<int>(8, 0);
  const graph made = capture(s(), [&](stream_ref c) {
    for (int i = 0; i < 5; ++i) fill(c, write<int>{x}, i);
  });
  {
    const executable one = made.instantiate(s());
    executable two = made.instantiate(s());
    const executable moved = std::move(two);
    const memory_report report = report_memory(dev());
    EXPECT_EQ(report.executables, 2U);
    EXPECT_EQ(report.executable_nodes, 10U);
    EXPECT_EQ(report.executables_estimate,
              10 * dev().api().bytes_per_node(std::source_location::current()));
    EXPECT_GT(report.executables_estimate, 0U);
    EXPECT_GE(report.explained(), report.executables_estimate + memory().bytes());
  }
  EXPECT_EQ(report_memory(dev()).executables, 0U);
}

INSTANTIATE_TEST_SUITE_P(devices, memory_report_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
