// Captures and other threads: neither disturbs the other. Threads meet at latches, never by time.
#include <latch>
#include <thread>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using threads_on = on_each_device;

// Runs `beside` on a thread of its own while a capture on `on` is open between two of its works.
template <class Beside>
graph captured_beside(stream_ref on, const buffer<int>& x, Beside&& beside) {
  std::latch opened{1};
  std::thread other{[&] {
    opened.wait();
    beside();
  }};
  try {
    graph made = capture(on, [&](stream_ref c) {
      fill(c, write<int>{x}, 1);
      opened.count_down();
      other.join();
      fill(c, write<int>{x}, 2);
    });
    return made;
  } catch (...) {
    if (!opened.try_wait()) opened.count_down();
    if (other.joinable()) other.join();
    throw;
  }
}

// D1
TEST_P(threads_on, may_query_events_and_idle_streams_beside_a_capture) {
  const buffer<int> x{memory(), 4, s()};
  const stream idle{dev()};
  event passed{dev()};
  passed.record(s());
  s().synchronize();
  const graph made = captured_beside(s(), x, [&] {
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(passed.finished());
      idle.synchronize();
    }
  });
  EXPECT_EQ(made.nodes(), 2U);
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
}

// D2
TEST_P(threads_on, may_pin_and_free_memory_beside_a_capture) {
  const buffer<int> x{memory(), 4, s()};
  const auto pin = [&] {
    const pinned<int> host{dev(), 1000};
    host[999] = 1;
    const stream copying{dev()};
    pool own{dev()};
    const buffer<int> y{own, 1000, copying};
    copy(copying, read<int>{host}, write<int>{y});
    EXPECT_EQ(read_back(copying, y)[999], 1);
  };
  const graph made = captured_beside(s(), x, pin);
  EXPECT_EQ(made.nodes(), 2U);
  for (int i = 0; i < 10; ++i) pin();
  expect_usable(s());
  EXPECT_EQ(dev().pinned_bytes(), 0U);
}

// D4, on another thread
TEST_P(threads_on, may_drop_graphs_executables_and_pools_beside_a_capture) {
  const reports quiet;
  const buffer<int> x{memory(), 4, s()};
  auto other = std::make_unique<pool>(dev(), "dropped");
  { const block freed{*other, 1000, s()}; }
  std::optional<graph> old{capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 5); })};
  std::optional<executable> replayed{old->instantiate(s())};
  s().synchronize();
  const graph made = captured_beside(s(), x, [&] {
    old.reset();
    replayed.reset();
    other.reset();
  });
  const executable fresh = made.instantiate(s());
  fresh.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
}

TEST_P(threads_on, may_capture_on_two_streams_at_once) {
  constexpr int rounds = 50;
  std::latch both{2};
  std::array<std::vector<int>, 2> got;
  const auto work = [&](int me) {
    const stream own{dev()};
    const buffer<int> x{memory(), 4, own};
    const buffer<int> y{memory(), 4, own};
    both.arrive_and_wait();
    for (int i = 0; i < rounds; ++i) {
      const int value = 1000 * me + i;
      const graph made = capture(own, [&](stream_ref c) {
        fill(c, write<int>{x}, value);
        const buffer<int> temporary{memory(), 300, c};
        copy(c, read<int>{x}, write<int>{temporary});
        copy(c, read<int>{temporary.all().subview(0, 4)}, write<int>{y});
      });
      const executable replayed = made.instantiate(own);
      replayed.launch(own);
      const std::vector<int> seen = read_back(own, y);
      if (made.nodes() == 3 && seen == std::vector<int>(4, value)) {
        got[static_cast<std::size_t>(me)].push_back(value);
      }
    }
  };
  std::thread first{work, 0};
  std::thread second{work, 1};
  first.join();
  second.join();
  EXPECT_EQ(got[0].size(), static_cast<std::size_t>(rounds));
  EXPECT_EQ(got[1].size(), static_cast<std::size_t>(rounds));
}

TEST_P(threads_on, whose_capture_fails_do_not_fail_the_others) {
  const buffer<int> x{memory(), 4, s()};
  const graph made = captured_beside(s(), x, [&] {
    const stream own{dev()};
    EXPECT_THROW(capture(own, [](stream_ref c) { c.synchronize(); }), capture_error);
    EXPECT_THROW(capture(own, [](stream_ref) { throw usage_error{"no"}; }), usage_error);
  });
  EXPECT_EQ(made.nodes(), 2U);
}

TEST_P(threads_on, share_a_pool_without_ever_sharing_a_block) {
  std::latch both{2};
  std::array<int, 2> wrong{};
  const auto work = [&](int me) {
    const stream own{dev()};
    both.arrive_and_wait();
    for (int i = 0; i < 200; ++i) {
      const buffer<int> a{memory(), static_cast<std::size_t>(64 * (1 + i % 7)), own};
      fill(own, write<int>{a}, me);
      if (read_back(own, a) != std::vector<int>(a.size(), me))
        ++wrong[static_cast<std::size_t>(me)];
    }
  };
  std::thread first{work, 0};
  std::thread second{work, 1};
  first.join();
  second.join();
  EXPECT_EQ(wrong, (std::array<int, 2>{}));
  EXPECT_EQ(memory().used(), 0U);
}

INSTANTIATE_TEST_SUITE_P(devices, threads_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
