// Rules 7 and 8: what becomes a node, what a replay does with it, and the graph of nothing.
#include <algorithm>

#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_07, a_capture_runs_nothing_and_each_replay_runs_it_all) {
  const auto x = filled<int>(4, 1);
  const auto y = filled<int>(4, 2);
  const auto z = number(1000);
  const auto called = std::make_shared<int>(0);
  const graph made = capture(s(), [&](stream_ref c) {
    EXPECT_TRUE(c.capturing());
    copy(c, read<int>{x}, write<int>{y});
    fill(c, write<int>{x}, 3);
    append(c, z, 1);
    append(c, z, 2);
    host_call(c, "count", {}, [called] { ++*called; });
  });
  EXPECT_FALSE(s().capturing());
  const executable replayed = made.instantiate(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
  EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 2));
  EXPECT_EQ(read_back(s(), z).front(), 0);
  EXPECT_EQ(*called, 0);
  for (int i = 1; i <= 4; ++i) replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 3));
  EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 3)) << "of the second replay";
  EXPECT_EQ(read_back(s(), z), std::vector<int>(1000, 12121212));
  EXPECT_EQ(*called, 4);
}

TEST_P(rule_07, each_work_is_a_node_and_an_event_is_none) {
  const buffer<int> x{memory(), 4, s()};
  const buffer<std::uint8_t> bytes{memory(), 10, s()};
  const pinned<int> p{dev(), 4};
  event inside{dev()};
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{x}, 1);
    fill(c, write<std::uint8_t>{bytes}, std::uint8_t{9});
    inside.record(c);
    copy(c, read<int>{x}, write<int>{p});
    append(c, x, 2);
    host_call(c, "nothing", {}, [] {});
    inside.wait(c);
  });
  EXPECT_EQ(made.size(), 5U);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 12));
  EXPECT_EQ(read_back(s(), bytes), std::vector<std::uint8_t>(10, 9));
}

TEST_P(rule_07, D17_a_host_call_fires_on_each_replay_and_its_state_goes_once_at_the_end) {
  struct owned {
    explicit owned(std::atomic<int>* count) : deaths{count} {}
    owned(const owned&) = delete;
    owned& operator=(const owned&) = delete;
    ~owned() { ++*deaths; }
    std::atomic<int>* deaths;
  };
  std::atomic<int> deaths{0};
  std::vector<int> rounds;
  int round = 0;
  std::optional<executable> replayed;
  {
    auto state = std::make_shared<owned>(&deaths);
    const graph made = capture(s(), [&](stream_ref c) {
      host_call(c, "first", {}, [state, &rounds, &round] { rounds.push_back(2 * round); });
      host_call(c, "second", {}, [&rounds, &round] { rounds.push_back(2 * round++ + 1); });
    });
    EXPECT_EQ(made.size(), 2U);
    replayed.emplace(made.instantiate(s()));
  }
  EXPECT_EQ(deaths, 0) << "the graph is gone, the executable still calls it";
  for (int i = 0; i < 50; ++i) replayed->launch(s());
  s().synchronize();
  ASSERT_EQ(rounds.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rounds[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(deaths, 0);
  replayed.reset();
  EXPECT_EQ(deaths, 1);
}

TEST_P(rule_07, an_eager_host_call_keeps_its_function_until_it_has_run) {
  auto state = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = state;
  std::atomic<int> ran{0};
  {
    const held_stream held{s()};
    const std::function<void()> add = [&ran, kept = std::move(state)] { ran += *kept; };
    for (int i = 0; i < 20; ++i) host_call(s(), "count", {}, add);
    EXPECT_EQ(ran, runs_later() ? 0 : 20);
    EXPECT_FALSE(watch.expired());
  }
  s().synchronize();
  EXPECT_EQ(ran, 20);
  EXPECT_TRUE(watch.expired());
}

TEST_P(rule_07, a_host_call_may_hold_what_calls_the_device_when_it_dies) {
  auto inner = std::make_shared<event>(dev());
  inner->record(s());
  const reports quiet;
  host_call(s(), "hold an event", {}, [kept = std::move(inner)] { (void)kept; });
  s().synchronize();
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  EXPECT_EQ(error_slot(), 0);
}

TEST_P(rule_07, a_host_call_of_a_capture_that_is_given_up_never_runs_and_is_freed) {
  auto state = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = state;
  int ran = 0;
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         host_call(c, "never", {}, [&ran, kept = std::move(state)] { ++ran; });
                         throw usage_error{"the body gives up"};
                       }),
               usage_error);
  s().synchronize();
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(watch.expired());
}

template <class T>
void expect_fills(pool& memory, stream_ref stream, T value, T around) {
  for (const std::size_t count : {1U, 2U, 3U, 5U, 7U, 31U, 255U, 999U, 1023U}) {
    const buffer<T> x{memory, count + 2, stream};
    fill(stream, write<T>{x}, around);
    fill(stream, write<T>{x.all().subview(1, count)}, value);
    std::vector<T> wanted(count + 2, value);
    wanted.front() = wanted.back() = around;
    ASSERT_EQ(read_back(stream, x), wanted) << count << " elements of " << sizeof(T) << " bytes";
  }
}

TEST_P(rule_07, a_fill_writes_every_count_of_elements_and_no_neighbour) {
  expect_fills<std::uint8_t>(memory(), s(), 0xa5, 0x5a);
  expect_fills<std::uint16_t>(memory(), s(), 0xbeef, 0x1234);
  expect_fills<std::uint16_t>(memory(), s(), 0x4242, 0);
  expect_fills<std::uint32_t>(memory(), s(), 0xdeadbeefU, 0x01020304U);
  expect_fills<std::uint32_t>(memory(), s(), 0x12341234U, 0);
  expect_fills<std::uint32_t>(memory(), s(), 0xffffffffU, 0);
  expect_fills<float>(memory(), s(), -1.5F, 0.25F);
}

TEST_P(rule_07, a_fill_writes_pinned_memory) {
  const pinned<int> p{dev(), 5};
  fill(s(), write<int>{p}, 6);
  s().synchronize();
  EXPECT_TRUE(std::ranges::equal(std::span{p.data(), p.size()}, std::vector<int>(5, 6)));
}

TEST_P(rule_08, a_capture_of_nothing_is_valid_and_its_launch_does_nothing) {
  const auto x = filled<int>(4, 1);
  const graph made = capture(s(), [](stream_ref) {});
  EXPECT_EQ(made.size(), 0U);
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
  expect_clean(s());
}

TEST_P(rule_08, a_capture_of_events_only_is_one_of_nothing) {
  event inside{dev()};
  const graph made = capture(s(), [&](stream_ref c) {
    inside.record(c);
    inside.wait(c);
    inside.record(c);
  });
  EXPECT_EQ(made.size(), 0U);
  made.instantiate(s()).launch(s());
  expect_clean(s());
}

TEST_P(rule_08, copies_and_fills_of_no_bytes_are_nothing) {
  const buffer<int> none{memory(), 0, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    copy(c, read<int>{none}, write<int>{none});
    fill(c, write<int>{none}, 1);
  });
  EXPECT_EQ(made.size(), 0U);
  made.instantiate(s()).launch(s());
  expect_clean(s());
}

TEST_P(rule_08, a_launch_of_nothing_takes_its_turn) {
  const graph made = capture(s(), [](stream_ref) {});
  const executable nothing = made.instantiate(s());
  const auto x = number();
  event passed{dev()};
  held_stream held{s()};
  append(s(), x, 1);
  nothing.launch(s());
  append(s(), x, 2);
  passed.record(s());
  EXPECT_EQ(passed.finished(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(s(), x), 12);
}

}  // namespace
}  // namespace reprise::test
