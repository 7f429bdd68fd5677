// Rule 17, reuse: freed memory in stream order, eagerly and in a capture: who gets it again, and
// what that costs in events.
#include <optional>
#include <set>

#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

// No call but those that were expected: nothing waits for the host, nothing is allocated.
void expect_events(const calls_since& now, std::uint64_t events) {
  EXPECT_EQ(now[seam_call::event_record], events);
  EXPECT_EQ(now[seam_call::event_wait], events);
  EXPECT_EQ(now[seam_call::create_event], events);
  EXPECT_EQ(now[seam_call::synchronize], 0U);
  EXPECT_EQ(now[seam_call::query], 0U);
  EXPECT_EQ(now[seam_call::allocate], 0U);
  EXPECT_EQ(now[seam_call::release], 0U);
}

// The place of a block that the stream took and freed.
std::byte* freed_by(stream_ref stream, pool& memory, std::size_t bytes) {
  return block{memory, bytes, stream}.data();
}

// Likewise, and wrote it meanwhile.
std::byte* used_by(stream_ref stream, pool& memory, std::size_t bytes) {
  const buffer<std::uint8_t> x{memory, bytes, stream};
  fill(stream, write<std::uint8_t>{x}, std::uint8_t{1});
  return reinterpret_cast<std::byte*>(x.all().data());
}

TEST_P(rule_17, a_block_is_reused_at_once_by_the_stream_that_freed_it) {
  const std::byte* const at = freed_by(s(), memory(), 5000);
  const calls_since now{*counts};
  const block again{memory(), 5000, s()};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 0);
}

TEST_P(rule_17, a_block_is_reused_by_another_stream_behind_an_event) {
  const stream other{dev()};
  const std::byte* const at = freed_by(s(), memory(), 64 * kib);  // the whole slab
  const calls_since now{*counts};
  const block again{memory(), 64 * kib, other};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 1);
}

TEST_P(rule_17, reuse_by_another_stream_comes_after_the_work_of_the_first) {
  const stream other{dev()};
  const std::size_t count = 16 * kib;
  std::optional<buffer<int>> first{std::in_place, memory(), count, s()};
  event done{dev()};
  held_stream held{s()};
  for (int i = 0; i < 50; ++i) fill(s(), write<int>{*first}, i);
  first.reset();
  const buffer<int> second{memory(), count, other};
  fill(other, write<int>{second}, 1000);
  done.record(other);
  EXPECT_EQ(done.finished(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(read_back(other, second), std::vector<int>(count, 1000));
}

TEST_P(rule_17, a_block_needs_no_event_again_once_it_belongs_to_the_other_stream) {
  const stream other{dev()};
  (void)freed_by(s(), memory(), 64 * kib);
  (void)freed_by(other, memory(), 64 * kib);
  const calls_since now{*counts};
  (void)freed_by(other, memory(), 64 * kib);
  expect_events(now, 0);
}

TEST_P(rule_17, a_stream_prefers_a_block_of_its_own_to_one_that_needs_an_event) {
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

TEST_P(rule_17, memory_that_nobody_used_needs_no_event) {
  const stream other{dev()};
  const block first{memory(), 1000, s()};
  const calls_since now{*counts};
  const block second{memory(), 1000, other};
  EXPECT_NE(second.data(), first.data());
  expect_events(now, 0);
}

TEST_P(rule_17, a_block_that_was_handed_to_another_stream_is_that_streams) {
  const stream other{dev()};
  std::byte* at = nullptr;
  {
    block handed{memory(), 64 * kib, s()};
    at = handed.data();
    order(s(), other);
    handed.freed_on(other);
  }
  const calls_since now{*counts};
  const block again{memory(), 64 * kib, other};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 0);
}

TEST_P(rule_17, what_a_destroyed_stream_freed_needs_no_event) {
  std::optional<stream> dying{dev()};
  const std::byte* const at = freed_by(*dying, memory(), 64 * kib);
  dying.reset();
  const calls_since now{*counts};
  const block again{memory(), 64 * kib, s()};
  EXPECT_EQ(again.data(), at);
  expect_events(now, 0);
}

TEST_P(rule_17, neighbours_are_merged_in_whatever_order_they_are_freed) {
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

TEST_P(rule_17, what_two_streams_freed_is_not_merged) {
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

TEST_P(rule_17, a_span_is_split_and_its_rest_is_left) {
  const std::byte* const at = freed_by(s(), memory(), 1024);
  const block head{memory(), 256, s()};
  const block tail{memory(), 768, s()};
  EXPECT_EQ(head.data(), at);
  EXPECT_EQ(tail.data(), at + 256);
}

// Slabs are looked through in the order in which the pool grew, wherever the device put them.
TEST_P(rule_17, of_several_slabs_the_oldest_is_first) {
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

TEST_P(rule_17, D12_temporaries_of_one_branch_share_memory) {
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

TEST_P(rule_17, D12_temporaries_of_two_branches_never_do) {
  const stream branch{dev()};
  event forked{dev()};
  event joined{dev()};
  const calls_since now{*counts};
  capture(s(), [&](stream_ref c) {
    forked.record(c);
    forked.wait(branch);
    const std::byte* const here = used_by(c, memory(), 1024 * kib);
    const std::byte* const there = used_by(branch, memory(), 1024 * kib);
    EXPECT_NE(here, there);
    EXPECT_EQ(used_by(branch, memory(), 1024 * kib), there);
    joined.record(branch);
    joined.wait(c);
    const block first{memory(), 1024 * kib, c};
    const block second{memory(), 1024 * kib, c};
    EXPECT_EQ((std::set<const std::byte*>{first.data(), second.data()}),
              (std::set<const std::byte*>{here, there}))
        << "behind the join both are free";
  });
  EXPECT_EQ(memory().bytes(), 2048 * kib);
  EXPECT_EQ(now[seam_call::event_record], 2U) << "reuse records no event of its own";
}

TEST_P(rule_17, a_block_freed_before_a_fork_is_reused_in_it) {
  const stream branch{dev()};
  capture(s(), [&](stream_ref c) {
    const std::byte* const before = used_by(c, memory(), 1024 * kib);
    order(c, branch);
    EXPECT_EQ(used_by(branch, memory(), 1024 * kib), before);
    order(branch, c);
  });
  EXPECT_EQ(memory().bytes(), 1024 * kib);
}

TEST_P(rule_17, a_block_freed_in_a_fork_is_reused_after_its_join_and_not_before) {
  const stream branch{dev()};
  capture(s(), [&](stream_ref c) {
    order(c, branch);
    const std::byte* const there = used_by(branch, memory(), 1024 * kib);
    const block here{memory(), 1024 * kib, c};
    EXPECT_NE(here.data(), there);
    order(branch, c);
    EXPECT_EQ(used_by(c, memory(), 1024 * kib), there);
  });
  EXPECT_EQ(memory().bytes(), 2048 * kib);
}

// A branch that forked before a join is not behind the works that the join brought.
TEST_P(rule_17, a_block_freed_behind_a_join_is_not_for_a_branch_from_before_it) {
  const stream user{dev()};
  const stream early{dev()};
  event forked{dev()};
  capture(s(), [&](stream_ref c) {
    forked.record(c);
    forked.wait(user);
    forked.wait(early);
    std::byte* freed = nullptr;
    {
      const buffer<std::uint8_t> lent{memory(), 64 * kib, c};
      freed = reinterpret_cast<std::byte*>(lent.all().data());
      fill(user, write<std::uint8_t>{lent}, std::uint8_t{1});
      order(user, c);
    }
    const block taken{memory(), 64 * kib, early};
    EXPECT_NE(taken.data(), freed);
    order(early, c);
  });
}

TEST_P(rule_17, a_block_of_a_capture_waits_until_its_graph_is_gone) {
  const std::byte* inside = nullptr;
  std::optional<graph> made{
      capture(s(), [&](stream_ref c) { inside = used_by(c, memory(), 64 * kib); })};
  EXPECT_NE(freed_by(s(), memory(), 64 * kib), inside);
  std::optional<executable> replayed{made->instantiate(s())};
  made.reset();
  EXPECT_NE(freed_by(s(), memory(), 64 * kib), inside);
  replayed->launch(s());
  replayed.reset();
  s().synchronize();
  api().settle();
  EXPECT_EQ(freed_by(s(), memory(), 64 * kib), inside);
}

// A replay may come on any stream, and is behind no eager work but that before its launch.
TEST_P(rule_17, a_capture_takes_nothing_that_eager_work_freed) {
  const std::byte* const eager = used_by(s(), memory(), 64 * kib);
  const graph made =
      capture(s(), [&](stream_ref c) { EXPECT_NE(used_by(c, memory(), 64 * kib), eager); });
  EXPECT_EQ(used_by(s(), memory(), 64 * kib), eager) << "eager work may have it again";
}

TEST_P(rule_17, a_pool_that_is_gone_leaves_its_graphs_what_they_write) {
  const std::byte* inside = nullptr;
  std::optional<pool> own{std::in_place, dev()};
  std::optional<graph> made{
      capture(s(), [&](stream_ref c) { inside = used_by(c, *own, 64 * kib); })};
  own.reset();
  EXPECT_NE(freed_by(s(), memory(), 64 * kib), inside);
  made.reset();
  s().synchronize();
  api().settle();
  pool next{dev()};
  EXPECT_EQ(freed_by(s(), next, 64 * kib), inside);
}

TEST_P(rule_17, what_several_streams_freed_is_joined_before_the_pool_grows) {
  const stream other{dev()};
  {
    const block low{memory(), 32 * kib, s()};
    const block high{memory(), 32 * kib, other};
    EXPECT_EQ(high.data(), low.data() + 32 * kib);
  }
  const block both{memory(), 64 * kib, s()};
  EXPECT_EQ(memory().bytes(), 64 * kib);
}

TEST_P(rule_17, a_block_freed_inside_a_capture_is_not_for_streams_outside) {
  const stream outside{dev()};
  capture(s(), [&](stream_ref c) {
    const std::byte* const inside = used_by(c, memory(), 64 * kib);
    const calls_since now{*counts};
    const block taken{memory(), 64 * kib, outside};
    EXPECT_NE(taken.data(), inside);
    EXPECT_EQ(now[seam_call::event_record], 0U);
    EXPECT_FALSE(stream_ref{outside}.capturing()) << "an event drew it into the capture";
  });
  expect_clean(outside);
}

}  // namespace
}  // namespace reprise::test
