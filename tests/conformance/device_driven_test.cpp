// Rule 13: graphs whose nodes are switched by kernels. They are instantiated once, and the host may
// launch them and do nothing else.
#include "reprise/ops/switch_nodes.hpp"

#include <utility>

#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

template <class E>
concept can_enable = requires(E& e, node_id id) { e.enable(id, true); };
template <class E>
concept can_update = requires(E& e, const graph& g) { e.update(g); };
template <class E>
concept can_change = requires(E& e, node_id id, const work& w) { e.change(id, w); };
template <class G>
concept is_instantiated_device_driven = requires(stream_ref s) {
  std::declval<G>().instantiate_device_driven(s, std::span<const node_id>{});
};

// Three digits in a row; the second and the third are switched by what `on` holds when the graph
// runs.
struct driven_graph {
  driven_graph(stream_ref on_stream, pool& memory)
      : x{memory, 1, on_stream}, handles{memory, 2, on_stream}, on{memory, 2, on_stream} {
    fill(on_stream, write<int>{x}, 0);
    upload(on_stream, std::vector<std::uint64_t>(2, 0), handles);
    switch_to(on_stream, {1, 1});
  }

  graph record(stream_ref stream) {
    return capture(stream, [&](stream_ref c) {
      launch(c, switch_nodes, read(handles), read(on));
      first = launch(c, append_digit, inout(x), 1);
      second = launch(c, append_digit, inout(x), 2);
      third = launch(c, append_digit, inout(x), 3);
    });
  }
  fixed_executable instantiate(stream_ref stream) {
    graph made = record(stream);
    const std::vector<node_id> driven{second, third};
    fixed_executable step = std::move(made).instantiate_device_driven(stream, driven);
    upload(stream,
           std::vector{static_cast<std::uint64_t>(step.handle(second)),
                       static_cast<std::uint64_t>(step.handle(third))},
           handles);
    return step;
  }
  void switch_to(stream_ref stream, const std::vector<std::uint8_t>& state) {
    upload(stream, state, on);
  }

  buffer<int> x;
  buffer<std::uint64_t> handles;
  buffer<std::uint8_t> on;
  node_id first{}, second{}, third{};
};

TEST_P(rule_13, kernels_switch_nodes_of_the_graph_they_are_in) {
  driven_graph with{s(), memory()};
  const fixed_executable step = with.instantiate(s());
  step.launch(s());
  EXPECT_EQ(value_of(s(), with.x), 123);
  fill(s(), write<int>{with.x}, 0);
  with.switch_to(s(), {0, 1});
  step.launch(s());
  with.switch_to(s(), {1, 0});
  step.launch(s());
  with.switch_to(s(), {0, 0});
  step.launch(s());
  with.switch_to(s(), {1, 1});
  step.launch(s());
  EXPECT_EQ(value_of(s(), with.x), 13121123);
}

TEST_P(rule_13, the_type_can_be_launched_and_no_more) {
  static_assert(can_enable<executable> && can_update<executable> && can_change<executable>);
  static_assert(!can_enable<fixed_executable>);
  static_assert(!can_update<fixed_executable>);
  static_assert(!can_change<fixed_executable>);
  static_assert(is_instantiated_device_driven<graph>);
  static_assert(!is_instantiated_device_driven<graph&>, "it takes the graph");
  driven_graph with{s(), memory()};
  const fixed_executable step = with.instantiate(s());
  EXPECT_EQ(step.nodes(), 4U);
}

TEST_P(rule_13, the_graph_serves_for_nothing_else_afterwards) {
  driven_graph with{s(), memory()};
  graph made = with.record(s());
  const std::vector<node_id> driven{with.second};
  const fixed_executable step = std::move(made).instantiate_device_driven(s(), driven);
  // NOLINTBEGIN(bugprone-use-after-move): that is the question
  EXPECT_THROW((void)made.instantiate(s()), error);
  EXPECT_THROW((void)made.without(driven), error);
  EXPECT_THROW((void)std::move(made).instantiate_device_driven(s(), driven), error);
  // NOLINTEND(bugprone-use-after-move)
  expect_clean(s());
}

TEST_P(rule_13, only_single_kernels_are_driven) {
  const auto x = number();
  const auto y = number();
  const auto refused = [&](const char* what, auto&& enqueue) {
    SCOPED_TRACE(what);
    node_id id{};
    graph made = capture(s(), [&](stream_ref c) { id = enqueue(c); });
    const std::vector<node_id> driven{id};
    EXPECT_THROW((void)std::move(made).instantiate_device_driven(s(), driven), usage_error);
    expect_clean(s());
  };
  refused("a copy", [&](stream_ref c) { return copy(c, read<int>{x}, write<int>{y}); });
  refused("a fill", [&](stream_ref c) { return fill(c, write<int>{x}, 1); });
  refused("a host call", [](stream_ref c) { return host_call(c, "h", {}, [] {}); });
  refused("an empty node", [](stream_ref c) { return empty(c, "nothing"); });
  refused("no node at all", [](stream_ref) { return node_id::none; });
}

TEST_P(rule_13, a_handle_is_of_a_driven_node_only) {
  driven_graph with{s(), memory()};
  const fixed_executable step = with.instantiate(s());
  EXPECT_NE(step.handle(with.second), device_node::none);
  EXPECT_NE(step.handle(with.second), step.handle(with.third));
  EXPECT_THROW((void)step.handle(with.first), usage_error);
  EXPECT_THROW((void)step.handle(node_id::none), usage_error);
}

TEST_P(rule_13, every_launch_is_one_call_after_the_one_upload) {
  driven_graph with{s(), memory()};
  const fixed_executable step = with.instantiate(s());
  step.launch(s());
  s().synchronize();
  fill(s(), write<int>{with.x}, 0);
  with.switch_to(s(), {0, 0});
  held_stream held{s()};
  const calls_since now{*counts};
  for (int i = 0; i < 5; ++i) step.launch(s());
  EXPECT_EQ(now[seam_call::launch], 5U);
  EXPECT_EQ(now[seam_call::instantiate], 0U);
  EXPECT_EQ(now[seam_call::synchronize], 0U);
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(s(), with.x), 11111);
}

}  // namespace
}  // namespace reprise::test
