// Freed memory in stream order: who gets it again, and what that costs in events.
#include <set>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

class reuse_on : public on_each_device {
 protected:
  // No call but those that were expected: nothing waits for the host, nothing is allocated.
  void expect_events(const calls_since& now, std::uint64_t events) const {
    EXPECT_EQ(now[seam_call::event_record], events);
    EXPECT_EQ(now[seam_call::event_wait], events);
    EXPECT_EQ(now[seam_call::create_event], events);
    EXPECT_EQ(now[seam_call::synchronize], 0U);
    EXPECT_EQ(now[seam_call::query], 0U);
    EXPECT_EQ(now[seam_call::allocate], 0U);
    EXPECT_EQ(now[seam_call::release], 0U);
  }

  std::byte* freed_by(stream_ref stream, std::size_t bytes) {
    return block{memory(), bytes, stream}.data();
  }
};

TEST_P(reuse_on, of_a_block_by_the_stream_that_freed_it_is_at_once) {
  const std::byte* const at = freed_by(s(), 5000);
  const calls_since now{*counts};
  const block again{memory(), 5000, s()};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 0);
}

TEST_P(reuse_on, by_another_stream_is_behind_an_event) {
  const stream other{dev()};
  const std::byte* const at = freed_by(s(), 64 * kib);  // the whole slab
  const calls_since now{*counts};
  const block again{memory(), 64 * kib, other};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 1);
}

TEST_P(reuse_on, by_another_stream_comes_after_the_work_of_the_first) {
  const stream other{dev()};
  const std::size_t count = 16 * kib;
  std::optional<buffer<int>> first{std::in_place, memory(), count, s()};
  for (int i = 0; i < 50; ++i) fill(s(), write<int>{*first}, i);
  first.reset();
  const buffer<int> second{memory(), count, other};
  fill(other, write<int>{second}, 1000);
  EXPECT_EQ(read_back(other, second), std::vector<int>(count, 1000));
}

TEST_P(reuse_on, by_the_stream_it_belongs_to_now_needs_no_event_again) {
  const stream other{dev()};
  (void)freed_by(s(), 64 * kib);
  (void)freed_by(other, 64 * kib);
  const calls_since now{*counts};
  (void)freed_by(other, 64 * kib);
  expect_events(now, 0);
}

TEST_P(reuse_on, prefers_a_block_of_its_own_to_one_that_needs_an_event) {
  const stream other{dev()};
  std::optional<block> low{std::in_place, memory(), 1000U, s()};
  std::optional<block> high{std::in_place, memory(), 1000U, other};
  const std::byte* const own = high->data();
  low.reset();
  high.reset();
  const calls_since now{*counts};
  const block again{memory(), 1000, other};
  EXPECT_EQ(again.data(), own);
  expect_events(now, 0);
}

TEST_P(reuse_on, of_memory_that_nobody_used_needs_no_event) {
  const stream other{dev()};
  const block first{memory(), 1000, s()};
  const calls_since now{*counts};
  const block second{memory(), 1000, other};
  EXPECT_NE(second.data(), first.data());
  expect_events(now, 0);
}

TEST_P(reuse_on, follows_a_block_that_was_handed_to_another_stream) {
  const stream other{dev()};
  std::byte* at = nullptr;
  {
    block handed{memory(), 64 * kib, s()};
    at = handed.data();
    handed.freed_on(other);
  }
  const calls_since now{*counts};
  const block again{memory(), 64 * kib, other};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 0);
}

TEST_P(reuse_on, of_what_a_destroyed_stream_freed_needs_no_event) {
  std::optional<stream> dying{dev()};
  const std::byte* const at = freed_by(*dying, 64 * kib);
  dying.reset();
  const calls_since now{*counts};
  const block again{memory(), 64 * kib, s()};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 0);
}

TEST_P(reuse_on, merges_neighbours_in_whatever_order_they_are_freed) {
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1}}) {
    std::array<block, 3> row;
    for (block& b : row) b = block{memory(), 256, s()};
    const block fence{memory(), 256, s()};
    const std::byte* const at = row[0].data();
    ASSERT_EQ(row[2].data(), at + 512);
    for (const int i : order) row[static_cast<std::size_t>(i)] = {};
    const block all{memory(), 768, s()};
    EXPECT_EQ(all.data(), at);
  }
}

TEST_P(reuse_on, does_not_merge_what_two_streams_freed) {
  const stream other{dev()};
  std::optional<block> low{std::in_place, memory(), 256U, s()};
  std::optional<block> high{std::in_place, memory(), 256U, other};
  const std::byte* const at = low->data();
  ASSERT_EQ(high->data(), at + 256);
  const block fence{memory(), 256, s()};
  low.reset();
  high.reset();
  const calls_since now{*counts};
  const block both{memory(), 512, s()};
  EXPECT_GT(both.data(), fence.data());
  expect_events(now, 0);
}

TEST_P(reuse_on, splits_a_span_and_leaves_the_rest) {
  const std::byte* const at = freed_by(s(), 1024);
  const block head{memory(), 256, s()};
  const block tail{memory(), 768, s()};
  EXPECT_EQ(head.data(), at);
  EXPECT_EQ(tail.data(), at + 256);
}

// Slabs are looked through in the order in which the pool grew, wherever the device put them.
TEST_P(reuse_on, of_several_slabs_begins_with_the_oldest) {
  std::vector<block> slabs;
  for (int i = 0; i < 6; ++i) slabs.emplace_back(memory(), 64 * kib, s());
  std::vector<std::byte*> order;
  for (const block& b : slabs) order.push_back(b.data());
  slabs.clear();
  std::vector<block> again;
  for (std::byte* const at : order) {
    again.emplace_back(memory(), 64 * kib, s());
    EXPECT_EQ(again.back().data(), at);
  }
}

// D12: temporaries of one capture share memory where the free comes first in the graph.
TEST_P(reuse_on, in_one_branch_of_a_capture_is_at_once) {
  std::set<std::byte*> places;
  capture(s(), [&](stream_ref c) {
    for (int i = 0; i < 3; ++i) {
      const buffer<std::uint8_t> temporary{memory(), 1024 * kib, c};
      fill(c, write<std::uint8_t>{temporary}, std::uint8_t{1});
      places.insert(reinterpret_cast<std::byte*>(temporary.all().data()));
    }
  });
  EXPECT_EQ(places.size(), 1U);
  EXPECT_EQ(memory().bytes(), 1024 * kib);
}

TEST_P(reuse_on, never_crosses_branches_of_a_capture) {
  const stream branch{dev()};
  event forked{dev()};
  event joined{dev()};
  const calls_since now{*counts};
  capture(s(), [&](stream_ref c) {
    forked.record(c);
    forked.wait(branch);
    const std::byte* const here = freed_by(c, 1024 * kib);
    const std::byte* const there = freed_by(branch, 1024 * kib);
    EXPECT_NE(here, there);
    EXPECT_EQ(freed_by(branch, 1024 * kib), there);
    joined.record(branch);
    joined.wait(c);
  });
  EXPECT_EQ(memory().bytes(), 2048 * kib);
  EXPECT_EQ(now[seam_call::event_record], 2U);
}

TEST_P(reuse_on, of_a_block_freed_inside_a_capture_is_not_for_streams_outside) {
  const stream outside{dev()};
  capture(s(), [&](stream_ref c) {
    const std::byte* const inside = freed_by(c, 64 * kib);
    const calls_since now{*counts};
    const block taken{memory(), 64 * kib, outside};
    EXPECT_NE(taken.data(), inside);
    EXPECT_EQ(now[seam_call::event_record], 0U);
    EXPECT_FALSE(stream_ref{outside}.capturing()) << "an event drew it into the capture";
  });
  expect_usable(outside);
}

INSTANTIATE_TEST_SUITE_P(devices, reuse_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
