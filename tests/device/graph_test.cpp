// Graphs that were captured as they should be: what a capture does, and what a replay does.
#include "reprise/device/graph.hpp"

#include <algorithm>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using graph_on = on_each_device;

TEST_P(graph_on, of_nothing_is_valid_and_its_launch_does_nothing) {
  const auto x = filled<int>(4, 1);
  const graph made = capture(s(), [](stream_ref) {});
  EXPECT_EQ(made.nodes(), 0U);
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
}

TEST_P(graph_on, is_made_without_running_the_work) {
  const auto x = filled<int>(4, 1);
  const auto y = filled<int>(4, 2);
  const auto called = std::make_shared<int>(0);
  const graph made = capture(s(), [&](stream_ref c) {
    EXPECT_TRUE(c.capturing());
    copy(c, read<int>{x}, write<int>{y});
    fill(c, write<int>{x}, 3);
    host_call(c, "count", {}, [called] { ++*called; });
  });
  EXPECT_FALSE(s().capturing());
  const executable replayed = made.instantiate(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
  EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 2));
  EXPECT_EQ(*called, 0);
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 3));
  EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 1));
  EXPECT_EQ(*called, 1);
}

TEST_P(graph_on, has_a_node_for_each_work_and_none_for_events) {
  const buffer<int> x{memory(), 4, s()};
  const pinned<int> p{dev(), 4};
  event inside{dev()};
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{x}, 1);
    inside.record(c);
    copy(c, read<int>{x}, write<int>{p});
    host_call(c, "nothing", {}, [] {});
    inside.wait(c);
  });
  EXPECT_EQ(made.nodes(), 3U);
}

TEST_P(graph_on, reads_at_each_replay_what_memory_holds_then) {
  const pinned<int> in{dev(), 4};
  const buffer<int> x{memory(), 4, s()};
  const buffer<int> y{memory(), 4, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    copy(c, read<int>{in}, write<int>{x});
    copy(c, read<int>{x}, write<int>{y});
  });
  const executable replayed = made.instantiate(s());
  for (int value = 1; value < 50; ++value) {
    std::ranges::fill(std::span{in.data(), in.size()}, value);
    replayed.launch(s());
    ASSERT_EQ(read_back(s(), y), std::vector<int>(4, value));
  }
}

// D11: everything that the recording function had on its stack is gone and overwritten.
[[gnu::noinline]] graph recorded_in_a_helper(stream_ref on, const buffer<int>& x, int* counted) {
  const int value = *counted + 7;
  const std::string label = "a label that lives on the heap and dies with this frame";
  const std::vector<access> touches{access_of(write<int>{x})};
  const std::function<void()> count = [counted, held = std::string(100, 'h')] {
    *counted += static_cast<int>(held.size());
  };
  return capture(on, [&](stream_ref c) {
    fill(c, write<int>{x}, value);
    host_call(c, label, {touches[0]}, count);
  });
}
[[gnu::noinline]] void overwrite_the_stack() {
  volatile char dirt[4096];
  for (volatile char& d : dirt) d = '\x5a';
}

TEST_P(graph_on, keeps_what_its_works_were_given) {
  const buffer<int> x{memory(), 4, s()};
  int counted = 0;
  const graph made = recorded_in_a_helper(s(), x, &counted);
  overwrite_the_stack();
  const executable replayed = made.instantiate(s());
  for (int i = 1; i <= 2; ++i) {
    fill(s(), write<int>{x}, 0);
    replayed.launch(s());
    EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 7));
    EXPECT_EQ(counted, 100 * i);
  }
}

TEST_P(graph_on, may_go_before_its_executable) {
  const auto x = filled<int>(4, 1);
  std::optional<graph> made{capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 2); })};
  const executable replayed = made->instantiate(s());
  made.reset();
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
}

TEST_P(graph_on, gives_executables_that_do_not_know_each_other) {
  const auto x = filled<int>(4, 1);
  const graph made = capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 2); });
  std::optional<executable> first{made.instantiate(s())};
  const executable second = made.instantiate(s());
  first->launch(s());
  s().synchronize();
  first.reset();
  fill(s(), write<int>{x}, 0);
  second.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
}

TEST_P(graph_on, is_replayed_on_streams_it_was_not_captured_on) {
  const auto x = filled<int>(4, 1);
  const graph made = capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 2); });
  const executable replayed = made.instantiate(s());
  s().synchronize();
  const stream other{dev()};
  replayed.launch(other);
  EXPECT_EQ(read_back(other, x), std::vector<int>(4, 2));
}

TEST_P(graph_on, is_replayed_in_the_order_of_the_stream) {
  const buffer<int> x{memory(), 1, s()};
  const buffer<int> seen{memory(), 3, s()};
  const graph made = capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 1); });
  const executable replayed = made.instantiate(s());
  fill(s(), write<int>{x}, 0);
  copy(s(), read<int>{x}, write<int>{seen.all().subview(0, 1)});
  replayed.launch(s());
  copy(s(), read<int>{x}, write<int>{seen.all().subview(1, 1)});
  fill(s(), write<int>{x}, 2);
  copy(s(), read<int>{x}, write<int>{seen.all().subview(2, 1)});
  EXPECT_EQ(read_back(s(), seen), (std::vector<int>{0, 1, 2}));
}

// D17
TEST_P(graph_on, calls_a_host_function_on_each_replay_and_frees_it_once_at_the_end) {
  struct owned {
    explicit owned(int* count) : deaths{count} {}
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;
    ~owned() { ++*deaths; }
    int* deaths;
  };
  int deaths = 0;
  std::vector<int> rounds;
  std::optional<executable> replayed;
  {
    auto state = std::make_shared<owned>(&deaths);
    const graph made = capture(s(), [&](stream_ref c) {
      host_call(c, "round", {},
                [state, &rounds] { rounds.push_back(static_cast<int>(rounds.size())); });
    });
    replayed.emplace(made.instantiate(s()));
  }
  for (int i = 0; i < 50; ++i) replayed->launch(s());
  s().synchronize();
  ASSERT_EQ(rounds.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(rounds));
  EXPECT_EQ(deaths, 0);
  replayed.reset();
  EXPECT_EQ(deaths, 1);
}

TEST_P(graph_on, launches_cost_one_call_each) {
  const auto x = filled<int>(4, 1);
  const graph made = capture(s(), [&](stream_ref c) {
    for (int i = 0; i < 10; ++i) fill(c, write<int>{x}, i);
  });
  const executable replayed = made.instantiate(s());
  const calls_since now{*counts};
  for (int i = 0; i < 5; ++i) replayed.launch(s());
  EXPECT_EQ(now[seam_call::launch], 5U);
  EXPECT_EQ(now[seam_call::fill], 0U);
  EXPECT_EQ(now[seam_call::synchronize], 0U);
  EXPECT_EQ(now[seam_call::allocate], 0U);
  s().synchronize();
}

TEST_P(graph_on, and_executable_that_were_moved_go_on) {
  const auto x = filled<int>(4, 1);
  graph made = capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 2); });
  const graph moved{std::move(made)};
  executable first = moved.instantiate(s());
  executable second{std::move(first)};
  second.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  EXPECT_EQ(moved.nodes(), 1U);
}

TEST_P(graph_on, or_executable_or_stream_that_was_moved_from_is_refused_in_one_line) {
  graph made = capture(s(), [](stream_ref) {});
  executable replayed = made.instantiate(s());
  stream held{dev()};
  const graph to{std::move(made)};
  const executable also{std::move(replayed)};
  const stream kept{std::move(held)};
  // NOLINTBEGIN(bugprone-use-after-move): that is the question
  for (const std::string& message : {message_of<device_error>([&] { (void)made.nodes(); }),
                                     message_of<device_error>([&] { (void)made.instantiate(s()); }),
                                     message_of<device_error>([&] { replayed.launch(s()); }),
                                     message_of<device_error>([&] { held.synchronize(); }),
                                     message_of<device_error>([&] { (void)to.instantiate(held); }),
                                     message_of<device_error>([&] { also.launch(held); })}) {
    EXPECT_TRUE(has(message, " on " + GetParam() + " failed: ")) << message;
    EXPECT_FALSE(has(message, "\n")) << message;
  }
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_FALSE(stream_ref{held}.capturing());
  expect_usable(s());
}

TEST_P(graph_on, is_launched_and_instantiated_only_on_its_own_device) {
  const device other = open_for_test("cpu");
  const stream foreign{other};
  const graph made = capture(s(), [](stream_ref) {});
  const executable replayed = made.instantiate(s());
  EXPECT_TRUE(has(message_of<usage_error>([&] { replayed.launch(foreign); }), "two devices"));
  EXPECT_TRUE(
      has(message_of<usage_error>([&] { (void)made.instantiate(foreign); }), "two devices"));
}

INSTANTIATE_TEST_SUITE_P(devices, graph_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
