// Rule 23: when a node is removed its predecessors come before its successors, by edges that are
// there once; and nodes with a programmatic edge are neither removed nor switched.
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

// A kernel in a graph that runs until the host lets it, so that a missing edge shows.
class gate_in_a_graph {
 public:
  explicit gate_in_a_graph(device_ref device) : word_{device, 1} { word_[0] = 0; }
  void add(stream_ref captured) { launch(captured, hold, read(word_)); }
  void open() { std::atomic_ref{word_[0]}.store(1); }
  void close() { std::atomic_ref{word_[0]}.store(0); }

 private:
  pinned<std::int32_t> word_;
};

TEST_P(rule_23, what_a_removed_node_stood_between_stays_in_order) {
  const auto x = number();
  std::vector<node_id> ids;
  const graph made = capture(s(), [&](stream_ref c) {
    for (int digit = 1; digit <= 6; ++digit) ids.push_back(append(c, x, digit));
  });
  // One alone, neighbours, the ends, and all but one.
  for (const auto& [gone, left] : std::vector<std::pair<std::vector<int>, int>>{
           {{2}, 12456}, {{1, 2, 3}, 156}, {{0, 5}, 2345}, {{0, 1, 2, 4, 5}, 4}}) {
    std::vector<node_id> without;
    for (const int i : gone) without.push_back(ids[static_cast<std::size_t>(i)]);
    const graph clone = made.without(without);
    EXPECT_EQ(clone.size(), 6U - gone.size());
    fill(s(), write<int>{x}, 0);
    clone.instantiate(s()).launch(s());
    EXPECT_EQ(value_of(s(), x), left);
  }
}

TEST_P(rule_23, the_last_node_may_be_removed) {
  const auto x = number();
  node_id only{};
  const graph made = capture(s(), [&](stream_ref c) { only = append(c, x, 1); });
  const graph nothing = made.without(std::vector{only});
  EXPECT_EQ(nothing.size(), 0U);
  nothing.instantiate(s()).launch(s());
  EXPECT_EQ(value_of(s(), x), 0);
  EXPECT_EQ(made.without({}).size(), 1U) << "nothing was taken out";
}

// The first work is held: nothing behind the removed one may run before it.
TEST_P(rule_23, a_bridge_carries_the_order_of_work_in_flight) {
  if (sim::controls_of(dev()) != nullptr) {
    GTEST_SKIP()
        << "a simulated device calls the look at work in flight a race; it finds a missing "
           "edge by the race that it leaves";
  }
  gate_in_a_graph first{dev()};
  const auto x = number();
  const auto y = number();
  const pinned<int> out{dev(), 1};
  const stream looking{dev()};
  node_id between{};
  const graph made = capture(s(), [&](stream_ref c) {
    first.add(c);
    between = append(c, y, 1);
    append(c, x, 2);
  });
  const executable step = made.without(std::vector{between}).instantiate(s());
  first.open();
  step.launch(s());  // loads what it runs
  EXPECT_EQ(value_of(s(), x), 2);
  first.close();
  event passed{dev()};
  step.launch(s());
  passed.record(s());
  for (int i = 0; i < 20; ++i) {
    copy(looking, read<int>{x}, write<int>{out});
    looking.synchronize();
    EXPECT_EQ(out[0], runs_later() ? 2 : 22);
  }
  EXPECT_EQ(passed.finished(), !runs_later());
  first.open();
  passed.synchronize();
  EXPECT_EQ(value_of(s(), x), 22);
  EXPECT_EQ(value_of(s(), y), 0);
}

// a -> b -> d and a -> c -> d: without b, or c, or both, d is still behind a, by an edge that is
// there once; and so it is where the capture itself made the edge that a bridge would make.
TEST_P(rule_23, bridges_across_forks_and_joins_make_no_edge_twice) {
  const auto x = number();
  const auto y = number();
  const auto z = number();
  const stream side{dev()};
  s().synchronize();
  node_id b{};
  node_id c_id{};
  node_id d{};
  const graph made = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    order(c, side);
    b = append(c, y, 1);
    c_id = append(side, z, 1);
    order(side, c);
    append(c, x, 2);
  });
  const graph straight = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    order(c, side);
    d = append(side, z, 1);
    order(side, c);  // the next is behind both: the first, and the fork's
    append(c, x, 2);
  });
  const auto expect = [&](const graph& of, int in_y, int in_z) {
    for (const buffer<int>* each : {&x, &y, &z}) fill(s(), write<int>{*each}, 0);
    const executable step = of.instantiate(s());
    step.launch(s());
    EXPECT_EQ(value_of(s(), x), 12);
    EXPECT_EQ(value_of(s(), y), in_y);
    EXPECT_EQ(value_of(s(), z), in_z);
  };
  expect(made, 1, 1);
  expect(made.without(std::vector{b}), 0, 1);
  expect(made.without(std::vector{c_id}), 1, 0);
  expect(made.without(std::vector{b, c_id}), 0, 0);
  expect(made.without(std::vector{b}).without(std::vector{c_id}), 0, 0);
  expect(straight, 0, 1);
  expect(straight.without(std::vector{d}), 0, 0);
}

TEST_P(rule_23, many_before_and_many_after_are_bridged_one_by_one) {
  constexpr int width = 3;
  std::vector<stream> sides;
  std::vector<buffer<int>> before;
  std::vector<buffer<int>> after;
  for (int i = 0; i < width; ++i) {
    sides.emplace_back(dev());
    before.push_back(number());
    after.push_back(number());
  }
  const auto y = number();
  s().synchronize();
  node_id middle{};
  const graph made = capture(s(), [&](stream_ref c) {
    for (std::size_t i = 0; i < width; ++i) {
      order(c, sides[i]);
      append(sides[i], before[i], 1);
    }
    for (std::size_t i = 0; i < width; ++i) order(sides[i], c);
    middle = append(c, y, 5);
    for (std::size_t i = 0; i < width; ++i) {
      order(c, sides[i]);
      copy(sides[i], read<int>{before[(i + 1) % width]}, write<int>{after[i]});
    }
    for (std::size_t i = 0; i < width; ++i) order(sides[i], c);
  });
  made.without(std::vector{middle}).instantiate(s()).launch(s());
  for (const buffer<int>& x : after) EXPECT_EQ(value_of(s(), x), 1);
  EXPECT_EQ(value_of(s(), y), 0);
}

// CUDA would let both ends of such an edge be switched and removed, and the kernel behind it then
// waits for a grid that never comes, or for none. Reprise refuses.
TEST_P(rule_23, nodes_with_a_programmatic_edge_are_neither_switched_nor_removed) {
  if (!on_cuda()) GTEST_SKIP() << "only CUDA has programmatic edges";
  const auto x = number();
  node_id both{};
  node_id after{};
  const graph made = capture(s(), [&](stream_ref c) {
    both = external(c, "early launch", {access_of(inout<int>{x})}, [&](void* native) {
      append_programmatically_native(native, x.all().data(), 1, 2);
    });
    after = append(c, x, 3);
  });
  executable step = made.instantiate(s());
  for (const std::string& message :
       {message_of<usage_error>([&] { step.enable(both, false); }),
        message_of<usage_error>([&] { (void)made.without(std::vector{both}); })}) {
    EXPECT_TRUE(has(message, "early launch")) << message;
    EXPECT_TRUE(has(message, "programmatic")) << message;
  }
  step.enable(after, false);
  step.launch(s());
  made.without(std::vector{after}).instantiate(s()).launch(s());
  step.enable(after, true);
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 1212123);
  expect_clean(s());
}

}  // namespace
}  // namespace reprise::test
