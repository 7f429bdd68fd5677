// Rule 18, over and over: 10,000 cycles of making and destroying each kind of object leave the
// bytes of pools and the device's total where they were.
#include "reprise/ops/switch_nodes.hpp"
#include "reprise/replay/recorder.hpp"
#include "tests/conformance/conformance.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {
namespace {

constexpr int cycles = sanitized ? 500 : 10000;  // a sanitizer sees the first leak
constexpr int warm_up = 200;                     // what a driver keeps for good, it keeps by then
constexpr std::size_t page = 2048 * kib;         // in which a card counts its memory

class rule_18_cycles : public conformance {
 protected:
  template <class Cycle>
  void leaves_no_trace(Cycle&& cycle) {
    for (int i = 0; i < warm_up; ++i) cycle();
    come_to_rest();
    const std::size_t free = dev().memory().free;
    const std::size_t pools = leased();
    const std::size_t own = memory().bytes();
    const std::size_t pinned_before = dev().pinned_bytes();
    const calls_since now{*counts};
    for (int i = 0; i < cycles; ++i) cycle();
    come_to_rest();
    EXPECT_EQ(leased(), pools);
    EXPECT_EQ(memory().bytes(), own);
    EXPECT_EQ(dev().pinned_bytes(), pinned_before);
    EXPECT_EQ(now[seam_call::allocate], now[seam_call::release]);
    if (on_cuda()) {
      EXPECT_LE(free, dev().memory().free + page);
    }
  }

 private:
  void come_to_rest() {
    s().synchronize();
    api().settle();
    dev().trim();
  }
};

TEST_P(rule_18_cycles, of_a_stream) {
  leaves_no_trace([&] { const stream made{dev()}; });
}

TEST_P(rule_18_cycles, of_an_event) {
  leaves_no_trace([&] {
    event made{dev()};
    made.record(s());
  });
}

TEST_P(rule_18_cycles, of_a_pool_and_a_block) {
  int i = 0;
  leaves_no_trace([&] {
    pool made{dev()};
    const block taken{made, static_cast<std::size_t>(1 + i++ % 7) * 100 * kib, s()};
  });
}

TEST_P(rule_18_cycles, of_a_slab_that_goes_back_to_the_device) {
  leaves_no_trace([&] {
    {
      pool made{dev()};
      const block taken{made, 64 * kib, s()};
    }
    dev().trim();
  });
}

TEST_P(rule_18_cycles, of_pinned_memory) {
  leaves_no_trace([&] { const pinned<int> made{dev(), 1000}; });
}

TEST_P(rule_18_cycles, of_a_graph) {
  const auto x = number();
  const stream side{dev()};
  leaves_no_trace([&] {
    const graph made = capture(s(), [&](stream_ref c) {
      append(c, x, 1);
      order(c, side);
      host_call(side, "nothing", {}, [] {});
      order(side, c);
      const buffer<int> temporary{memory(), 1000, c};
      fill(c, write<int>{temporary}, 1);
    });
  });
}

TEST_P(rule_18_cycles, of_an_executable_with_its_launch_in_flight) {
  const auto x = number();
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{x}, 1);
    append(c, x, 2);
  });
  leaves_no_trace([&] { made.instantiate(s()).launch(s()); });
}

TEST_P(rule_18_cycles, of_an_executable_that_is_changed) {
  const auto x = number();
  node_id first{};
  const auto record = [&](int digit) {
    return capture(s(), [&](stream_ref c) { first = append(c, x, digit); });
  };
  const graph other = record(2);
  const graph made = record(1);
  leaves_no_trace([&] {
    executable step = made.instantiate(s());
    step.enable(first, false);
    change(s(), step, first, append_digit, inout(x), 3);
    step.update(other);
    step.enable(first, true);
  });
}

TEST_P(rule_18_cycles, of_a_clone) {
  const auto x = number();
  std::vector<node_id> ids;
  const graph made = capture(s(), [&](stream_ref c) {
    for (int digit = 1; digit <= 3; ++digit) ids.push_back(append(c, x, digit));
  });
  leaves_no_trace([&] { const graph clone = made.without(std::vector{ids[1]}); });
}

TEST_P(rule_18_cycles, of_a_device_driven_executable) {
  const auto x = number();
  const buffer<std::uint64_t> handles{memory(), 1, s()};
  const buffer<std::uint8_t> on{memory(), 1, s()};
  leaves_no_trace([&] {
    node_id driven{};
    graph made = capture(s(), [&](stream_ref c) {
      launch(c, switch_nodes, read(handles), read(on));
      driven = append(c, x, 1);
    });
    const std::vector<node_id> list{driven};
    const fixed_executable step = std::move(made).instantiate_device_driven(s(), list);
  });
}

TEST_P(rule_18_cycles, of_a_recording) {
  scaling doubling{memory(), s(), 2.0F};
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  const std::vector<float> values{1, 2, 3};
  leaves_no_trace([&] {
    const recorded done = maker.record(s(), doubling.what, {doubling.x.from_host(values)});
    ASSERT_TRUE(done.made.has_value());
  });
}

INSTANTIATE_TEST_SUITE_P(, rule_18_cycles, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
