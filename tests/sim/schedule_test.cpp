// What the adversary may do to work, and what not: late and mixed, but never against the rules.
#include <map>
#include <set>

#include "tests/sim/simulated.hpp"

namespace reprise::test {
namespace {

constexpr std::uint64_t seeds = 60;

// Two streams that append to a list on the host, by host calls.
std::string order_of(device_ref dev, bool ordered) {
  std::string ran;
  const stream a{dev};
  const stream b{dev};
  const auto add = [&](const stream& on, char what) {
    host_call(on, "add", {}, [&ran, what] { ran += what; });
  };
  add(a, '1');
  add(a, '2');
  if (ordered) order(a, b);
  add(b, 'x');
  add(b, 'y');
  a.synchronize();
  b.synchronize();
  return ran;
}

TEST(the_schedule, keeps_the_order_of_a_stream_and_mixes_streams_in_every_way) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 4 * seeds; ++seed) {
    const simulated dev{seed};
    seen.insert(order_of(dev, false));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"12xy", "1x2y", "1xy2", "x12y", "x1y2", "xy12"}));
}

TEST(the_schedule, keeps_the_order_that_an_event_makes) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const simulated dev{seed};
    EXPECT_EQ(order_of(dev, true), "12xy") << seed;
  }
}

TEST(the_schedule, lets_calls_return_before_their_work_ran) {
  int late = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const simulated dev{seed};
    const stream s{dev.dev()};
    bool ran = false;
    host_call(s, "run", {}, [&] { ran = true; });
    if (!ran) ++late;
    s.synchronize();
    EXPECT_TRUE(ran);
  }
  EXPECT_GT(late, 20);
}

TEST(the_schedule, mixes_the_branches_of_a_graph_and_keeps_its_edges) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 4 * seeds; ++seed) {
    const simulated dev{seed};
    std::string ran;
    const stream a{dev.dev()};
    const stream b{dev.dev()};
    const auto add = [&](stream_ref on, char what) {
      host_call(on, "add", {}, [&ran, what] { ran += what; });
    };
    const graph made = capture(a, [&](stream_ref c) {
      add(c, '(');
      order(c, b);
      add(c, '1');
      add(b, 'x');
      order(b, c);
      add(c, ')');
    });
    const executable step = made.instantiate(a);
    step.launch(a);
    step.launch(b);  // behind the first: an executable runs one launch at a time
    a.synchronize();
    b.synchronize();
    seen.insert(ran);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"(1x)(1x)", "(1x)(x1)", "(x1)(1x)", "(x1)(x1)"}));
}

// Everything that a run does, on two threads and two streams, by copies through pools.
void busy(device_ref dev) {
  const auto work = [&](int value) {
    const stream s{dev};
    const stream other{dev};
    pool memory{dev, "busy"};
    for (int i = 0; i < 4; ++i) {
      const buffer<int> x{memory, 64, s};
      fill(s, write<int>{x}, value + i);
      const graph made = capture(s, [&](stream_ref c) {
        const buffer<int> y{memory, 64, c};
        copy(c, read<int>{x}, write<int>{y});
        copy(c, read<int>{y}, write<int>{x});
      });
      made.instantiate(s).launch(s);
      order(s, other);
      EXPECT_EQ(fetched(other, x.all()), std::vector<int>(64, value + i));
    }
  };
  host_thread second{dev, [&] { work(100); }};
  work(200);
  second.join();
}

TEST(the_schedule, is_the_same_for_the_same_seed) {
  std::set<std::vector<std::string>> different;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    simulated first{seed};
    busy(first);
    first.close();
    simulated second{seed};
    busy(second);
    second.close();
    EXPECT_EQ(first.seen().trace, second.seen().trace) << seed;
    EXPECT_EQ(first.kinds(), std::vector<sim::finding_kind>{}) << seed;
    different.insert(first.seen().trace);
  }
  EXPECT_GT(different.size(), 15U);
}

// Written down once, so that another machine, compiler or number of cores would show. It changes
// when the simulator draws other choices, and then every seed in anybody's notes is another run.
TEST(the_schedule, is_the_same_on_every_machine) {
  std::string ran;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const simulated dev{seed};
    ran += order_of(dev, false) + ' ';
  }
  EXPECT_EQ(ran,
            "xy12 12xy 1xy2 x12y 1xy2 12xy 1xy2 12xy 1x2y xy12 1x2y 12xy "
            "x1y2 12xy 1x2y 12xy 1x2y 1xy2 12xy 1x2y 1x2y 1x2y 12xy 12xy ");
}

// What a machine chose, an address or a hash, would not be the same on the next.
TEST(the_schedule, writes_no_address_into_its_trace) {
  simulated dev{3};
  busy(dev);
  for (const std::string& line : dev.seen().trace) {
    EXPECT_FALSE(has(line, "0x")) << line;
  }
}

TEST(a_held_stream, runs_nothing_until_it_is_released) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const simulated dev{seed};
    const stream held{dev.dev()};
    const stream free{dev.dev()};
    std::string ran;
    dev.controls().hold(stream_ref{held}.id());
    host_call(held, "held", {}, [&] { ran += 'h'; });
    event passed{dev.dev()};
    passed.record(held);
    host_call(free, "free", {}, [&] { ran += 'f'; });
    free.synchronize();
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(passed.finished());
    EXPECT_EQ(ran, "f");
    dev.controls().release(stream_ref{held}.id());
    passed.synchronize();
    EXPECT_EQ(ran, "fh");
  }
}

TEST(a_held_stream, that_is_waited_for_is_a_deadlock_and_is_named) {
  simulated dev{1};
  const stream held{dev.dev()};
  dev.controls().hold(stream_ref{held}.id());
  const std::string message = message_of<device_error>([&] {
    host_call(held, "never", {}, [] {});
    held.synchronize();
  });
  EXPECT_TRUE(has(message, "deadlock")) << message;
  EXPECT_TRUE(has(message, "held: stream 1")) << message;
  dev.controls().release(stream_ref{held}.id());
}

// D8: two launches of one executable never overlap; those of two executables do.
TEST(the_timeline, D8_shows_that_one_executable_runs_one_launch_at_a_time) {
  for (const bool shared : {true, false}) {
    const simulated dev{5};
    const stream a{dev.dev()};
    const stream b{dev.dev()};
    dev.controls().lasts("long", 100);
    const graph made = capture(a, [&](stream_ref c) { host_call(c, "long", {}, [] {}); });
    const executable first = made.instantiate(a);
    const executable second = made.instantiate(b);
    first.launch(a);
    (shared ? first : second).launch(b);
    a.synchronize();
    b.synchronize();
    EXPECT_EQ(dev.controls().now(), shared ? 200U : 100U);
    EXPECT_EQ(dev.seen().timeline.size(), 2U);
  }
}

TEST(the_timeline, shows_order_overlap_and_slow_streams) {
  const simulated dev{2};
  const stream a{dev.dev()};
  const stream b{dev.dev()};
  dev.controls().slow(stream_ref{b}.id(), 10);
  host_call(a, "a1", {}, [] {});
  host_call(a, "a2", {}, [] {});
  host_call(b, "b1", {}, [] {});
  order(a, b);
  host_call(b, "b2", {}, [] {});
  b.synchronize();
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> at;
  for (const sim::timeline_row& row : dev.seen().timeline) at[row.label] = {row.begin, row.end};
  using span = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(at["a1"], (span{0, 1}));
  EXPECT_EQ(at["a2"], (span{1, 2}));
  EXPECT_EQ(at["b1"], (span{0, 10}));
  EXPECT_EQ(at["b2"], (span{10, 20}));
}

// D15: what is read from pageable memory is what was there at the call.
TEST(the_schedule, D15_takes_pageable_sources_at_the_call) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const simulated dev{seed};
    const stream s{dev.dev()};
    pool memory{dev, "inputs"};
    const buffer<int> x{memory, 16, s};
    const buffer<int> y{memory, 16, s};
    const graph made = capture(s, [&](stream_ref c) { copy(c, read<int>{x}, write<int>{y}); });
    const executable step = made.instantiate(s);
    std::vector<int> input(16);
    for (int i = 0; i < 5; ++i) {
      input.assign(16, i);
      copy(s, read<int>{view<const int>{input.data(), 16}}, write<int>{x});
      input.assign(16, -1);
      step.launch(s);
      EXPECT_EQ(fetched(s, y.all()), std::vector<int>(16, i));
    }
  }
}

TEST(a_host_thread, runs_in_turn_and_its_failure_comes_out_at_the_join) {
  const simulated dev{4};
  host_thread fails{dev, [&] {
                      const stream s{dev.dev()};
                      s.synchronize();
                      throw usage_error{"no"};
                    }};
  EXPECT_THROW(fails.join(), usage_error);
}

TEST(host_threads, wait_for_one_another_without_blocking) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const simulated dev{seed};
    bool ready = false;
    bool seen = false;
    host_thread waiting{dev, [&] {
                          wait_until(dev, [&] { return ready; });
                          seen = true;
                        }};
    ready = true;
    wait_until(dev, [&] { return seen; });
    waiting.join();
  }
}

TEST(host_threads, that_wait_for_nothing_that_comes_are_a_deadlock) {
  const simulated dev{1};
  const std::string message =
      message_of<device_error>([&] { wait_until(dev, [] { return false; }); });
  EXPECT_TRUE(has(message, "deadlock")) << message;
}

// D1, in the mode that Reprise does not use: the fault that others meet is there to be met.
TEST(global_captures, D1_are_spoiled_by_another_thread_that_asks_and_say_so) {
  const simulated dev{6};
  const stream s{dev.dev()};
  event passed{dev.dev()};
  dev.controls().capture_globally(true);
  const std::string message = message_of<capture_error>([&] {
    capture(s, [&](stream_ref) {
      host_thread polls{dev, [&] { (void)passed.finished(); }};
      polls.join();
    });
  });
  EXPECT_TRUE(has(message, "finished on sim:seed=6")) << message;
  EXPECT_TRUE(has(message, "another thread")) << message;
  dev.controls().capture_globally(false);
  EXPECT_EQ(capture(s, [](stream_ref c) { empty(c, "fine"); }).size(), 1U);
}

TEST(a_capture, that_another_thread_spoils_ends_with_its_cause_and_the_stream_goes_on) {
  const simulated dev{6};
  const stream s{dev.dev()};
  pool memory{dev, "x"};
  const buffer<int> x{memory, 4, s};
  const std::string message = message_of<capture_error>([&] {
    capture(s, [&](stream_ref c) {
      dev.controls().spoil_capture(c.id(), "a watchdog");
      fill(c, write<int>{x}, 1);
    });
  });
  EXPECT_TRUE(has(message, "a watchdog")) << message;
  fill(s, write<int>{x}, 2);
  EXPECT_EQ(fetched(s, x.all()), std::vector<int>(4, 2));
}

}  // namespace
}  // namespace reprise::test
