// Rule 19: a graph owns the pinned memory that its copies read, and what the host rewrites for each
// replay lies in slots that wait their turn.
#include <algorithm>

#include "reprise/device/host_thread.hpp"
#include "reprise/replay/recorder.hpp"
#include "tests/conformance/conformance.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_19, pinned_memory_is_aligned_and_is_the_hosts_to_write) {
  const pinned<float> host{dev(), 100};
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host.data()) % 256, 0U);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
  EXPECT_EQ(host.all()[99], 99.0F);
  EXPECT_EQ(host.all().bytes(), 400U);
}

TEST_P(rule_19, a_copy_reads_at_each_replay_what_the_memory_holds_then) {
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

TEST_P(rule_19, D11_memory_that_a_copy_reads_lasts_as_long_as_the_graph) {
  const buffer<int> x{memory(), 1000, s()};
  std::optional<graph> made;
  {
    const pinned<int> in{dev(), 1000};
    std::ranges::fill(std::span{in.data(), in.size()}, 7);
    made.emplace(capture(s(), [&](stream_ref c) { copy(c, read<int>{in}, write<int>{x}); }));
  }
  EXPECT_EQ(dev().pinned_bytes(), 4000U) << "the graph holds it";
  {
    const pinned<int> next{dev(), 1000};  // does not get the memory
    std::ranges::fill(std::span{next.data(), next.size()}, 9);
    made->instantiate(s()).launch(s());
    EXPECT_EQ(read_back(s(), x), std::vector<int>(1000, 7));
  }
  made.reset();
  s().synchronize();
  api().settle();
  EXPECT_EQ(dev().pinned_bytes(), 0U);
}

TEST_P(rule_19, memory_that_a_copy_reads_lasts_as_long_as_clones_and_launches) {
  const buffer<int> x{memory(), 4, s()};
  const auto y = number();
  const pinned<int> out{dev(), 4};
  node_id gone{};
  std::optional<executable> step;
  {
    const pinned<int> in{dev(), 4};
    std::ranges::fill(std::span{in.data(), in.size()}, 5);
    const graph made = capture(s(), [&](stream_ref c) {
      gone = append(c, y, 1);
      copy(c, read<int>{in}, write<int>{x});
      copy(c, read<int>{x}, write<int>{out});
    });
    const graph clone = made.without(std::vector{gone});
    step.emplace(clone.instantiate(s()));
  }
  EXPECT_EQ(dev().pinned_bytes(), 32U);
  {
    held_stream held{s()};
    step->launch(s());
    step.reset();
    EXPECT_STILL_HELD(held);
    held.release();
    s().synchronize();
    api().settle();
  }
  EXPECT_EQ(out[3], 5);
  EXPECT_EQ(dev().pinned_bytes(), 16U) << "what is left is the test's own";
  EXPECT_EQ(value_of(s(), y), 0);
}

TEST_P(rule_19, memory_that_an_executable_was_changed_to_read_lasts_too) {
  const buffer<int> x{memory(), 4, s()};
  const pinned<int> first{dev(), 4};
  std::ranges::fill(std::span{first.data(), first.size()}, 1);
  node_id copied{};
  const graph made =
      capture(s(), [&](stream_ref c) { copied = copy(c, read<int>{first}, write<int>{x}); });
  executable step = made.instantiate(s());
  {
    const pinned<int> second{dev(), 4};
    std::ranges::fill(std::span{second.data(), second.size()}, 2);
    step.change_copy(copied, read<int>{second}, write<int>{x});
  }
  const pinned<int> next{dev(), 4};
  std::ranges::fill(std::span{next.data(), next.size()}, 3);
  step.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
}

// As many replays may be queued as there are slots, each with its own inputs; nothing waits for the
// first.
TEST_P(rule_19, inputs_of_queued_replays_lie_in_slots_of_their_own) {
  adding adder{memory(), s(), 1};
  const step what = adder.make();
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  std::vector<float> value{0};
  recorded done = maker.record(s(), what, {adder.x.from_host(value)});
  ASSERT_TRUE(done.made.has_value());
  const std::size_t slots = done.made->staging_slots();
  ASSERT_GE(slots, 4U);
  s().synchronize();
  held_stream held{s()};
  float sum = 0;
  for (std::size_t i = 1; i <= slots; ++i) {
    value = {static_cast<float>(i)};
    sum += value[0];
    ASSERT_TRUE(done.made->replay(s(), what, {adder.x.from_host(value)}).has_value());
  }
  EXPECT_EQ(done.made->staging_waits(), 0U);
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(read_back(s(), adder.total)[0], sum);
}

// One more waits for the first, and that is counted. Another thread releases the stream once it
// sees that the host waits.
TEST_P(rule_19, a_slot_is_rewritten_only_when_its_replay_has_read_it) {
  adding adder{memory(), s(), 1};
  const step what = adder.make();
  eager_runner eager{dev()};
  recorder maker{dev(), eager};
  std::vector<float> value{0};
  recorded done = maker.record(s(), what, {adder.x.from_host(value)});
  ASSERT_TRUE(done.made.has_value());
  s().synchronize();
  held_stream held{s()};
  const calls_since now{*counts};
  std::atomic<bool> through{false};
  host_thread releasing{dev(), [&] {
                          wait_until(dev(),
                                     [&] { return now[seam_call::synchronize] != 0 || through; });
                          held.release();
                        }};
  float sum = 0;
  for (std::size_t i = 1; i <= done.made->staging_slots() + 1; ++i) {
    value = {static_cast<float>(i)};
    sum += value[0];
    done.made->replay(s(), what, {adder.x.from_host(value)});
  }
  through = true;
  releasing.join();
  EXPECT_EQ(done.made->staging_waits(), runs_later() ? 1U : 0U);
  EXPECT_EQ(read_back(s(), adder.total)[0], sum);
}

}  // namespace
}  // namespace reprise::test
