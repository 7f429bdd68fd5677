// Rule 7: which nodes a graph of ours may hold, found where they are recorded and not at the
// instantiation.
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_07, D7_a_node_that_no_graph_can_hold_is_refused_where_it_is_recorded) {
  if (!on_cuda()) GTEST_SKIP() << "external work has no native stream to record on";
  const auto x = number();
  const std::string message = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      append(c, x, 1);
      external(c, "library call", {}, [](void* native) { allocate_natively(native); });
    });
  });
  EXPECT_TRUE(has(message, "'library call'")) << message;
  EXPECT_TRUE(has(message, "memory ")) << message;
  EXPECT_TRUE(has(message, "forbidden_nodes_test.cpp")) << message;
  EXPECT_TRUE(has(message, "take memory from a pool")) << message;
  expect_clean(s());
  EXPECT_EQ(value_of(s(), x), 0) << "something ran";
}

}  // namespace
}  // namespace reprise::test
