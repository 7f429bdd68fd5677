// Rules 10 and 11: which nodes of an executable run, what they are given, and what is not switched.
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

// One node of each kind that can be switched: a kernel appends 1, a copy and a fill write 5 and 6.
struct three_kinds {
  three_kinds(stream_ref on, pool& memory)
      : number{memory, 1, on},
        copied{memory, 1, on},
        filled{memory, 1, on},
        source{memory, 1, on},
        other{memory, 1, on} {
    clear(on);
    fill(on, write<int>{source}, 5);
    fill(on, write<int>{other}, 8);
  }
  void clear(stream_ref on) const {
    for (const buffer<int>* x : {&number, &copied, &filled}) fill(on, write<int>{*x}, 0);
  }
  graph record(stream_ref on) {
    return capture(on, [&](stream_ref c) {
      kernel_node = launch(c, append_digit, inout(number), 1);
      copy_node = copy(c, read<int>{source}, write<int>{copied});
      fill_node = fill(c, write<int>{filled}, 6);
    });
  }
  // What a launch of `step` leaves, from nothing.
  std::vector<int> run(stream_ref on, const executable& step) const {
    clear(on);
    step.launch(on);
    return {read_back(on, number)[0], read_back(on, copied)[0], read_back(on, filled)[0]};
  }

  buffer<int> number, copied, filled, source, other;
  node_id kernel_node{}, copy_node{}, fill_node{};
};

TEST_P(rule_10, a_new_executable_has_every_node_on_whatever_others_have) {
  three_kinds works{s(), memory()};
  const graph made = works.record(s());
  executable first = made.instantiate(s());
  first.enable(works.kernel_node, false);
  first.enable(works.fill_node, false);
  const executable second = made.instantiate(s());
  EXPECT_EQ(works.run(s(), second), (std::vector{1, 5, 6}));
  EXPECT_EQ(works.run(s(), first), (std::vector{0, 5, 0}));
}

TEST_P(rule_10, a_node_of_each_kind_is_switched_off_and_on) {
  three_kinds works{s(), memory()};
  executable step = works.record(s()).instantiate(s());
  for (const auto& [id, without] :
       std::vector<std::pair<node_id, std::vector<int>>>{{works.kernel_node, {0, 5, 6}},
                                                         {works.copy_node, {1, 0, 6}},
                                                         {works.fill_node, {1, 5, 0}}}) {
    step.enable(id, false);
    EXPECT_EQ(works.run(s(), step), without);
    step.enable(id, false);  // again
    EXPECT_EQ(works.run(s(), step), without);
    step.enable(id, true);
    EXPECT_EQ(works.run(s(), step), (std::vector{1, 5, 6}));
  }
  for (const node_id id : {works.kernel_node, works.copy_node, works.fill_node})
    step.enable(id, false);
  EXPECT_EQ(works.run(s(), step), (std::vector{0, 0, 0})) << "an executable with nothing on";
}

TEST_P(rule_10, a_node_of_each_kind_is_given_other_parameters) {
  three_kinds works{s(), memory()};
  executable step = works.record(s()).instantiate(s());
  change(s(), step, works.kernel_node, append_digit, inout(works.number), 7);
  step.change_copy(works.copy_node, read<int>{works.other}, write<int>{works.copied});
  step.change_fill(works.fill_node, write<int>{works.filled}, 9);
  EXPECT_EQ(works.run(s(), step), (std::vector{7, 8, 9}));
  change(s(), step, works.kernel_node, append_digit, inout(works.number), 1);
  EXPECT_EQ(works.run(s(), step), (std::vector{1, 8, 9})) << "back again";
}

TEST_P(rule_10, D10_a_change_leaves_the_other_nodes_and_the_other_arguments) {
  const auto x = number();
  const auto y = number();
  std::vector<node_id> ids;
  const graph made = capture(s(), [&](stream_ref c) {
    for (int digit = 1; digit <= 5; ++digit) ids.push_back(append(c, x, digit));
  });
  executable step = made.instantiate(s());
  change(s(), step, ids[2], append_digit, inout(x), 9);
  change(s(), step, ids[2], append_digit, inout(x), 3);
  change(s(), step, ids[1], append_digit, inout(y), 8);
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 1345);
  EXPECT_EQ(value_of(s(), y), 8);
}

TEST_P(rule_10, the_state_of_a_node_survives_a_change_of_parameters) {
  three_kinds works{s(), memory()};
  executable step = works.record(s()).instantiate(s());
  for (const node_id id : {works.kernel_node, works.copy_node, works.fill_node})
    step.enable(id, false);
  change(s(), step, works.kernel_node, append_digit, inout(works.number), 7);
  step.change_copy(works.copy_node, read<int>{works.other}, write<int>{works.copied});
  step.change_fill(works.fill_node, write<int>{works.filled}, 9);
  EXPECT_EQ(works.run(s(), step), (std::vector{0, 0, 0})) << "still off";
  for (const node_id id : {works.kernel_node, works.copy_node, works.fill_node})
    step.enable(id, true);
  EXPECT_EQ(works.run(s(), step), (std::vector{7, 8, 9})) << "with what was set while it was off";
}

TEST_P(rule_10, a_launch_that_is_enqueued_keeps_its_nodes_and_their_parameters) {
  const auto x = number();
  std::vector<node_id> ids;
  const graph made = capture(s(), [&](stream_ref c) {
    for (int digit = 1; digit <= 3; ++digit) ids.push_back(append(c, x, digit));
  });
  executable step = made.instantiate(s());
  held_stream held{s()};
  step.launch(s());
  step.enable(ids[0], false);
  change(s(), step, ids[1], append_digit, inout(x), 8);
  EXPECT_STILL_HELD(held);
  step.launch(s());
  step.enable(ids[0], true);
  step.enable(ids[2], false);
  EXPECT_STILL_HELD(held);
  step.launch(s());
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(s(), x), 1238318);
}

TEST_P(rule_11, a_host_call_is_not_switched_and_not_removed) {
  int called = 0;
  node_id call{};
  const graph made =
      capture(s(), [&](stream_ref c) { call = host_call(c, "count it", {}, [&] { ++called; }); });
  executable step = made.instantiate(s());
  for (const std::string& message :
       {message_of<usage_error>([&] { step.enable(call, false); }),
        message_of<usage_error>([&] { (void)made.without(std::vector{call}); })}) {
    EXPECT_TRUE(has(message, "count it")) << message;
    EXPECT_TRUE(has(message, "host")) << message;
    EXPECT_FALSE(has(message, "\n")) << message;
  }
  step.launch(s());
  s().synchronize();
  EXPECT_EQ(called, 1);
  expect_clean(s());
}

TEST_P(rule_11, an_empty_node_is_not_switched_and_not_removed) {
  const auto x = number();
  node_id place{};
  const graph made = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    place = empty(c, "the join");
    append(c, x, 2);
  });
  executable step = made.instantiate(s());
  for (const std::string& message :
       {message_of<usage_error>([&] { step.enable(place, false); }),
        message_of<usage_error>([&] { (void)made.without(std::vector{place}); })}) {
    EXPECT_TRUE(has(message, "the join")) << message;
    EXPECT_TRUE(has(message, "empty")) << message;
  }
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 12);
  expect_clean(s());
}

TEST_P(rule_11, a_node_of_another_graph_and_none_are_refused) {
  const auto x = number();
  node_id elsewhere{};
  const graph other = capture(s(), [&](stream_ref c) { elsewhere = append(c, x, 1); });
  const graph made = capture(s(), [&](stream_ref c) { append(c, x, 2); });
  executable step = made.instantiate(s());
  for (const node_id id : {elsewhere, node_id::none}) {
    EXPECT_THROW(step.enable(id, false), usage_error);
    EXPECT_THROW((void)made.without(std::vector{id}), usage_error);
    EXPECT_THROW(change(s(), step, id, append_digit, inout(x), 3), usage_error);
  }
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 2);
  expect_clean(s());
}

TEST_P(rule_11, parameters_of_another_kind_are_refused_and_nothing_is_changed) {
  three_kinds works{s(), memory()};
  executable step = works.record(s()).instantiate(s());
  EXPECT_THROW(step.change_fill(works.copy_node, write<int>{works.copied}, 9), usage_error);
  EXPECT_THROW(
      step.change_copy(works.kernel_node, read<int>{works.other}, write<int>{works.copied}),
      usage_error);
  EXPECT_THROW(change(s(), step, works.fill_node, append_digit, inout(works.number), 7),
               usage_error);
  EXPECT_EQ(works.run(s(), step), (std::vector{1, 5, 6}));
  expect_clean(s());
}

TEST_P(rule_11, a_refused_removal_removes_none_of_its_list) {
  const auto x = number();
  node_id first{};
  node_id call{};
  const graph made = capture(s(), [&](stream_ref c) {
    first = append(c, x, 1);
    call = host_call(c, "stay", {}, [] {});
    append(c, x, 2);
  });
  EXPECT_THROW((void)made.without(std::vector{first, call}), usage_error);
  EXPECT_EQ(made.size(), 3U);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(value_of(s(), x), 12);
}

}  // namespace
}  // namespace reprise::test
