// Rule 2: copies from pageable host memory are staged, and visible to the next work on that stream.
#include <algorithm>
#include <numeric>

#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

// Longer than any staging memory, and no whole number of its parts.
constexpr std::size_t long_count = (std::size_t{3} << 20) + 77;

std::vector<int> counted_up(std::size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

template <class T>
view<T> all(std::vector<T>& of) {
  return {of.data(), of.size()};
}

TEST_P(rule_02, a_copy_is_whole_at_every_length) {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{1000}, std::size_t{131072}, std::size_t{131073}, long_count}) {
    std::vector<int> in = counted_up(count);
    std::vector<int> out(count, 0);
    const buffer<int> x{memory(), count, s()};
    copy(s(), read<int>{all(in)}, write<int>{x});
    copy(s(), read<int>{x}, write<int>{all(out)});
    EXPECT_TRUE(out == in) << count << ": a download is there when the call returns";
  }
}

// D15
TEST_P(rule_02, D15_the_source_may_be_overwritten_when_the_call_returns) {
  for (const std::size_t count : {std::size_t{64}, long_count / 16}) {
    std::vector<int> in = counted_up(count);
    const std::vector<int> expected = in;
    const buffer<int> x{memory(), count, s()};
    upload(s(), in, x);
    std::ranges::fill(in, -1);
    EXPECT_TRUE(read_back(s(), x) == expected) << count;
  }
}

TEST_P(rule_02, D15_each_of_two_hundred_values_is_seen_by_the_next_work) {
  const buffer<int> x{memory(), 4, s()};
  const buffer<int> y{memory(), 4, s()};
  for (int value = 0; value < 200; ++value) {
    upload(s(), std::vector<int>(4, value), x);
    copy(s(), read<int>{x}, write<int>{y});
    ASSERT_EQ(read_back(s(), y), std::vector<int>(4, value));
  }
}

TEST_P(rule_02, D15_each_of_two_hundred_values_is_seen_by_the_next_replay) {
  const buffer<int> x{memory(), 1, s()};
  const buffer<int> y{memory(), 1, s()};
  const graph made = capture(s(), [&](stream_ref c) { copy(c, read<int>{x}, write<int>{y}); });
  const executable step = made.instantiate(s());
  for (int value = 0; value < 200; ++value) {
    std::vector<int> input{value};
    upload(s(), input, x);
    step.launch(s());
    input[0] = -1;
    ASSERT_EQ(value_of(s(), y), value);
  }
}

// A ring's worth of unread bytes makes the host wait, and nothing less does.
TEST_P(rule_02, many_small_inputs_do_not_wait_for_a_stream_that_is_held) {
  const buffer<int> x{memory(), 200, s()};
  held_stream held{s()};
  for (std::size_t i = 0; i < 200; ++i) {
    const int value = static_cast<int>(i + 1);
    copy(s(), read<int>{view<const int>{&value, 1}}, write<int>{x.all().subview(i, 1)});
  }
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(read_back(s(), x), counted_up(200));
}

TEST_P(rule_02, a_copy_between_two_pageable_places_keeps_its_turn) {
  std::vector<int> a(10, 0);
  std::vector<int> b(10, 0);
  const auto x = filled<int>(10, 3);
  copy(s(), read<int>{x}, write<int>{all(a)});
  copy(s(), read<int>{all(a)}, write<int>{all(b)});
  s().synchronize();
  EXPECT_EQ(b, std::vector<int>(10, 3));
}

TEST_P(rule_02, a_copy_between_pinned_and_pageable_memory_is_whole) {
  const pinned<int> p{dev(), long_count};
  std::vector<int> in = counted_up(long_count);
  std::vector<int> out(long_count, 0);
  copy(s(), read<int>{all(in)}, write<int>{p});
  copy(s(), read<int>{p}, write<int>{all(out)});
  s().synchronize();
  EXPECT_TRUE(out == in);
}

}  // namespace
}  // namespace reprise::test
