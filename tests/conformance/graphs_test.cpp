// Rules 9 and 14: templates, executables and node ids; and that an executable is born uploaded.
#include <algorithm>
#include <set>

#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

std::vector<node_id> ids_of(const graph& of) {
  std::vector<node_id> ids;
  for (const node_row& row : of.nodes()) ids.push_back(row.id);
  return ids;
}

// Everything that the recording function had on its stack is gone and overwritten.
[[gnu::noinline]] graph recorded_in_a_helper(stream_ref on, const buffer<std::int32_t>& x,
                                             const buffer<std::int32_t>& y, int* counted) {
  const int value = *counted + 7;
  const std::string label = "a label that lives on the heap and dies with this frame";
  const std::vector<access> touches{access_of(write<std::int32_t>{x})};
  const std::function<void()> count = [counted, held = std::string(100, 'h')] {
    *counted += static_cast<int>(held.size());
  };
  return capture(on, [&](stream_ref c) {
    fill(c, write<std::int32_t>{x}, value);
    launch(c, append_digit, inout(y), value);
    host_call(c, label, {touches[0]}, count);
  });
}
[[gnu::noinline]] void overwrite_the_stack() {
  volatile char dirt[4096];
  for (volatile char& d : dirt) d = '\x5a';
}

TEST_P(rule_09, D11_a_graph_keeps_what_its_works_were_given) {
  const buffer<int> x{memory(), 4, s()};
  const auto y = number();
  int counted = 0;
  const graph made = recorded_in_a_helper(s(), x, y, &counted);
  overwrite_the_stack();
  const executable replayed = made.instantiate(s());
  for (int i = 1; i <= 2; ++i) {
    fill(s(), write<int>{x}, 0);
    replayed.launch(s());
    EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 7));
    EXPECT_EQ(value_of(s(), y), i == 1 ? 7 : 77);
    EXPECT_EQ(counted, 100 * i);
  }
}

TEST_P(rule_09, a_graph_and_its_executables_outlive_each_other) {
  const auto x = number();
  std::optional<graph> made{capture(s(), [&](stream_ref c) { append(c, x, 1); })};
  std::optional<executable> first{made->instantiate(s())};
  const executable second = made->instantiate(s());
  first->launch(s());
  s().synchronize();
  first.reset();
  const executable third = made->instantiate(s());
  made.reset();
  second.launch(s());
  third.launch(s());
  EXPECT_EQ(value_of(s(), x), 111);
}

TEST_P(rule_09, each_work_gets_an_id_and_the_graph_lists_it) {
  const auto x = number();
  const pinned<int> p{dev(), 1};
  std::vector<node_id> given;
  const graph made = capture(s(), [&](stream_ref c) {
    given.push_back(append(c, x, 1));
    given.push_back(copy(c, read<int>{x}, write<int>{p}));
    given.push_back(fill(c, write<int>{x}, 2));
    given.push_back(host_call(c, "look", {}, [] {}));
    given.push_back(empty(c, "a place"));
  });
  EXPECT_EQ((std::set<node_id>{given.begin(), given.end()}.size()), 5U);
  EXPECT_FALSE(std::ranges::count(given, node_id::none));
  const std::vector<node_row> rows = made.nodes();
  const std::vector<node_id> listed = ids_of(made);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_TRUE(std::ranges::is_permutation(given, listed));
  const std::vector<std::pair<node_kind, std::string>> wanted{{node_kind::kernel, "append_digit"},
                                                              {node_kind::copy, "copy"},
                                                              {node_kind::fill, "fill"},
                                                              {node_kind::host_call, "look"},
                                                              {node_kind::empty, "a place"}};
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto row = std::ranges::find(rows, given[i], &node_row::id);
    ASSERT_NE(row, rows.end());
    EXPECT_EQ(row->kind, wanted[i].first) << wanted[i].second;
    EXPECT_EQ(row->label, wanted[i].second);
  }
}

TEST_P(rule_09, work_that_is_not_captured_and_events_have_no_id) {
  const auto x = number();
  EXPECT_EQ(append(s(), x, 1), node_id::none);
  EXPECT_EQ(fill(s(), write<int>{x}, 2), node_id::none);
  EXPECT_EQ(copy(s(), read<int>{x}, write<int>{x}), node_id::none);
  EXPECT_EQ(host_call(s(), "h", {}, [] {}), node_id::none);
  EXPECT_EQ(external(s(), "e", {}, [](void*) {}), node_id::none);
  EXPECT_EQ(empty(s(), "nothing"), node_id::none);
  s().synchronize();
}

TEST_P(rule_09, an_id_is_never_given_twice) {
  const auto x = number();
  std::set<node_id> seen;
  for (int i = 0; i < 10; ++i) {
    const graph made = capture(s(), [&](stream_ref c) {
      for (int digit = 0; digit < 5; ++digit) append(c, x, digit);
    });
    for (const node_id id : ids_of(made)) EXPECT_TRUE(seen.insert(id).second);
  }
  EXPECT_EQ(seen.size(), 50U);
}

// Ids come from the capture's tail: an enumeration may list the nodes in any order.
TEST_P(rule_09, an_id_is_the_work_it_was_given_for_across_forks) {
  const stream side{dev()};
  std::vector<buffer<int>> numbers;
  for (int i = 0; i < 8; ++i) numbers.push_back(number());
  s().synchronize();
  std::vector<node_id> ids;
  const graph made = capture(s(), [&](stream_ref c) {
    order(c, side);
    for (int i = 0; i < 8; ++i) {
      ids.push_back(
          append(i % 2 == 0 ? c : stream_ref{side}, numbers[static_cast<std::size_t>(i)], i + 1));
    }
    order(side, c);
  });
  for (std::size_t off = 0; off < 8; ++off) {
    executable step = made.instantiate(s());
    step.enable(ids[off], false);
    for (const buffer<int>& x : numbers) fill(s(), write<int>{x}, 0);
    step.launch(s());
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(value_of(s(), numbers[i]), i == off ? 0 : static_cast<int>(i + 1));
    }
  }
}

TEST_P(rule_09, a_clone_keeps_the_ids_and_outlives_its_original) {
  const auto x = number();
  std::vector<node_id> ids;
  std::optional<graph> made{capture(s(), [&](stream_ref c) {
    for (int digit = 1; digit <= 3; ++digit) ids.push_back(append(c, x, digit));
  })};
  const graph clone = made->without(std::vector{ids[1]});
  EXPECT_EQ(made->size(), 3U) << "the original stays as it is";
  made.reset();
  EXPECT_TRUE(std::ranges::is_permutation(ids_of(clone), std::vector{ids[0], ids[2]}));
  executable step = clone.instantiate(s());
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 13);
  step.enable(ids[0], false);
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 133);
}

TEST_P(rule_09, one_work_may_own_several_nodes) {
  const auto x = number();
  node_id both{};
  const graph made = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    both = external(c, "two kernels of a library", {access_of(inout<int>{x})}, [&](void* native) {
      if (native != nullptr) append_twice_native(native, x.all().data(), 2);
      if (native == nullptr) x.all()[0] = 100 * x.all()[0] + 22;
    });
    append(c, x, 3);
  });
  EXPECT_NE(both, node_id::none);
  EXPECT_EQ(std::ranges::count(ids_of(made), both), on_cuda() ? 2 : 1);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(value_of(s(), x), 1223);
}

TEST_P(rule_14, a_launch_is_one_call_and_nothing_is_uploaded_by_it) {
  const auto x = filled<int>(4, 1);
  const graph made = capture(s(), [&](stream_ref c) {
    for (int i = 0; i < 10; ++i) fill(c, write<int>{x}, i);
  });
  const executable replayed = made.instantiate(s());
  const calls_since now{*counts};
  for (int i = 0; i < 5; ++i) replayed.launch(s());
  EXPECT_EQ(now[seam_call::launch], 5U);
  EXPECT_EQ(now[seam_call::instantiate], 0U);
  EXPECT_EQ(now[seam_call::fill], 0U);
  EXPECT_EQ(now[seam_call::synchronize], 0U);
  EXPECT_EQ(now[seam_call::allocate], 0U);
  s().synchronize();
}

TEST_P(rule_14, a_change_before_the_first_launch_holds_for_it) {
  const auto x = number();
  node_id second{};
  node_id third{};
  const graph made = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    second = append(c, x, 2);
    third = append(c, x, 3);
  });
  executable step = made.instantiate(s());
  step.enable(second, false);
  change(s(), step, third, append_digit, inout(x), 7);
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 17);
}

TEST_P(rule_14, instantiating_anew_is_the_way_back) {
  const auto x = number();
  node_id first{};
  node_id second{};
  const graph made = capture(s(), [&](stream_ref c) {
    first = append(c, x, 1);
    second = append(c, x, 2);
  });
  executable changed = made.instantiate(s());
  changed.enable(first, false);
  change(s(), changed, second, append_digit, inout(x), 9);
  changed.launch(s());
  EXPECT_EQ(value_of(s(), x), 9);
  const executable anew = made.instantiate(s());
  anew.launch(s());
  EXPECT_EQ(value_of(s(), x), 912);
}

TEST_P(rule_14, an_upload_on_one_stream_serves_a_launch_on_another_at_once) {
  const auto x = number();
  s().synchronize();
  const stream other{dev()};
  const graph made = capture(s(), [&](stream_ref c) { append(c, x, 5); });
  for (int i = 0; i < 5; ++i) {
    const executable step = made.instantiate(s());
    step.launch(other);
    other.synchronize();
  }
  EXPECT_EQ(value_of(other, x), 55555);
}

}  // namespace
}  // namespace reprise::test
