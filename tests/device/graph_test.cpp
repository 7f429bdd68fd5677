// The owners of graphs and executables: moved, moved from, and given to another device.
#include "reprise/device/graph.hpp"

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using graph_on = on_each_device;

TEST_P(graph_on, and_executable_that_were_moved_go_on) {
  const auto x = filled<int>(4, 1);
  graph made = capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 2); });
  const graph moved{std::move(made)};
  executable first = moved.instantiate(s());
  executable second{std::move(first)};
  second.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  EXPECT_EQ(moved.size(), 1U);
}

TEST_P(graph_on, or_executable_or_stream_that_was_moved_from_is_refused_in_one_line) {
  graph made = capture(s(), [](stream_ref) {});
  executable replayed = made.instantiate(s());
  stream held{dev()};
  const graph to{std::move(made)};
  const executable also{std::move(replayed)};
  const stream kept{std::move(held)};
  // NOLINTBEGIN(bugprone-use-after-move): that is the question
  for (const std::string& message : {message_of<device_error>([&] { (void)made.size(); }),
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
  const std::string_view remedy = "use a stream of the device it was captured on";
  EXPECT_TRUE(has(message_of<usage_error>([&] { replayed.launch(foreign); }), remedy));
  EXPECT_TRUE(has(message_of<usage_error>([&] { (void)made.instantiate(foreign); }), remedy));
}

INSTANTIATE_TEST_SUITE_P(devices, graph_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
