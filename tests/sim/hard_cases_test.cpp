// Programs at the edge: correct ones that a simulator is tempted to blame, and faults that would
// take it down with them.
#include <atomic>
#include <optional>
#include <thread>

#include "reprise/base/mutex.hpp"
#include "tests/sim/simulated.hpp"

namespace reprise::test {
namespace {

using sim::finding_kind;

constexpr std::uint64_t seeds = 30;
constexpr auto here = [] { return std::source_location::current(); };

template <class Scenario>
void expect_nothing(Scenario&& scenario) {
  std::uint64_t seed = 0;
  for (const sim::finding& f : first_findings(seeds, scenario)) {
    EXPECT_EQ(f.text, "") << "seed " << ++seed;
  }
}

template <class Scenario>
void expect_found(finding_kind kind, Scenario&& scenario) {
  std::uint64_t seed = 0;
  for (const sim::finding& f : first_findings(seeds, scenario)) {
    EXPECT_EQ(sim::name_of(f.kind), sim::name_of(kind)) << "seed " << ++seed << ": " << f.text;
    EXPECT_NE(f.text, "") << "seed " << seed;
  }
}

// ---- Correct ------------------------------------------------------------------------------------

TEST(a_host_call, may_wait_for_a_lock_that_the_thread_holds_which_enqueues) {
  expect_nothing([](device_ref dev) {
    const stream s{dev};
    mutex guard;
    int calls = 0;
    for (int i = 0; i < 10; ++i) {
      {
        const std::lock_guard lock{guard};
        host_call(s, "count", {}, [&] {
          const std::lock_guard inner{guard};
          ++calls;
        });
        event{dev}.record(s);
      }
    }
    s.synchronize();
    EXPECT_EQ(calls, 10);
  });
}

TEST(a_host_call, may_hold_the_last_of_a_buffer_of_the_pool_that_is_being_used) {
  expect_nothing([](device_ref dev) {
    const stream s{dev};
    pool memory{dev, "x"};
    for (int i = 0; i < 20; ++i) {
      auto kept = std::make_shared<buffer<int>>(memory, 5000, s);
      fill(s, write<int>{*kept}, i);
      host_call(s, "keep", {}, [kept] {});
      kept.reset();
      const buffer<int> other{memory, 5000, s};
      fill(s, write<int>{other}, i);
    }
    s.synchronize();
  });
}

TEST(a_host_call, tells_the_host_that_what_was_before_it_is_over) {
  expect_nothing([](device_ref dev) {
    const stream a{dev};
    const stream b{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, a};
    bool over = false;
    fill(a, write<int>{x}, 1);
    host_call(a, "over", {}, [&] { over = true; });
    wait_until(dev, [&] { return over; });
    fill(b, write<int>{x}, 2);
    order(b, a);
  });
}

TEST(a_capture, may_free_what_was_taken_outside_and_be_replayed) {
  expect_nothing([](device_ref dev) {
    const stream s{dev};
    pool memory{dev, "x"};
    const buffer<int> out{memory, 64, s};
    std::optional<buffer<int>> scratch{std::in_place, memory, std::size_t{64}, s};
    const graph made = capture(s, [&](stream_ref c) {
      fill(c, write<int>{*scratch}, 1);
      copy(c, read<int>{*scratch}, write<int>{out});
      scratch.reset();
      const buffer<int> next{memory, 64, c};
      fill(c, write<int>{next}, 2);
      copy(c, read<int>{next}, write<int>{out});
    });
    const executable step = made.instantiate(s);
    for (int i = 0; i < 3; ++i) step.launch(s);
    EXPECT_EQ(fetched(s, out.all()), std::vector<int>(64, 2));
  });
}

TEST(memory_that_a_capture_took, is_its_owners_before_a_launch_and_without_one) {
  for (const bool abandoned : {false, true}) {
    expect_nothing([&](device_ref dev) {
      const stream s{dev};
      pool memory{dev, "x"};
      std::optional<buffer<int>> x;
      try {
        capture(s, [&](stream_ref c) {
          x.emplace(memory, std::size_t{64}, c);
          fill(c, write<int>{*x}, 1);
          if (abandoned) throw usage_error{"no"};
        });
      } catch (const usage_error&) {
      }
      fill(s, write<int>{*x}, 2);
      EXPECT_EQ(fetched(s, x->all()), std::vector<int>(64, 2));
    });
  }
}

TEST(an_access_of_no_bytes, touches_nothing) {
  expect_nothing([](device_ref dev) {
    const stream s{dev};
    std::optional<pinned<int>> host{std::in_place, dev, std::size_t{4}};
    const access none{host->data(), 0, false};
    sim::controls_of(dev)->hold(stream_ref{s}.id());
    host_call(s, "empty batch", {none}, [] {});
    host.reset();
    sim::controls_of(dev)->release(stream_ref{s}.id());
  });
}

TEST(a_stream_that_only_waits, carries_nothing_along) {
  const simulated dev{3};
  const stream relay{dev.dev()};
  const stream works{dev.dev()};
  for (int i = 0; i < 5000; ++i) {
    host_call(works, "work", {}, [] {});
    order(works, relay);
    order(relay, works);
  }
  relay.synchronize();
  EXPECT_EQ(dev.seen().operations, 5000U);
}

// ---- Faults -------------------------------------------------------------------------------------

TEST(a_copy, that_runs_past_its_block_is_found_and_harms_nobody) {
  for (const bool source : {true, false}) {
    expect_found(finding_kind::use_after_free, [&](device_ref dev) {
      const stream s{dev};
      device_api& api = dev.api();
      std::byte* const small = api.allocate(memory_kind::device, 4096, here());
      std::byte* const large = api.allocate(memory_kind::device, 65536, here());
      fill_bytes(s, small, 4096, 0, 1);
      fill_bytes(s, large, 65536, 0, 1);
      copy_bytes(s, source ? small : large, source ? large : small, 8192);
      api.synchronize(stream_ref{s}.id(), here());
    });
  }
}

TEST(a_copy, of_memory_that_was_released_is_found) {
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned}) {
    for (const bool source : {true, false}) {
      expect_found(finding_kind::use_after_free, [&](device_ref dev) {
        const stream s{dev};
        pool memory{dev, "x"};
        const buffer<int> x{memory, 64, s};
        fill(s, write<int>{x}, 1);
        std::byte* const gone = dev.api().allocate(kind, 256, here());
        dev.api().release(kind, gone);
        auto* const at = reinterpret_cast<std::byte*>(x.all().data());
        copy_bytes(s, source ? gone : at, source ? at : gone, 256);
        s.synchronize();
      });
    }
  }
}

TEST(a_stale_source, is_found_whatever_its_size_and_whoever_writes_beside_it) {
  for (const std::size_t count : {std::size_t{64}, std::size_t{1} << 18}) {
    expect_found(finding_kind::stale_source, [&](device_ref dev) {
      const stream s{dev};
      pool memory{dev, "x"};
      const buffer<int> x{memory, count, s};
      const pinned<int> host{dev, 2 * count};
      fill(s, write<int>{x}, 0);
      sim::controls_of(dev)->hold(stream_ref{s}.id());
      copy(s, read<int>{x}, write<int>{host.all().subview(count, count)});
      host[count - 1] = 1;
      copy(s, read<int>{host.all().subview(0, count)}, write<int>{x});
      host[count - 1] = 2;
      sim::controls_of(dev)->release(stream_ref{s}.id());
      s.synchronize();
    });
  }
}

TEST(unwritten_memory, is_not_given_to_the_host_by_way_of_pinned_memory) {
  expect_found(finding_kind::unwritten_read, [](device_ref dev) {
    const stream s{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, s};
    const pinned<int> host{dev, 64};
    copy(s, read<int>{x}, write<int>{host});
    s.synchronize();
  });
}

TEST(a_thread_that_waits, ends_when_another_has_failed) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    simulated dev{seed};
    const reports quiet;
    const bool never = false;
    try {
      const host_thread waits{dev, [&] { wait_until(dev, [&] { return never; }); }};
      const stream s{dev.dev()};
      pool memory{dev, "x"};
      const buffer<int> x{memory, 64, s};
      (void)fetched(s, x.all());
      ADD_FAILURE() << "nothing was found";
    } catch (const device_error&) {
    }
  }
}

TEST(what_a_host_call_throws, is_told_and_the_stream_goes_on) {
  const simulated dev{1};
  const reports told;
  const stream s{dev.dev()};
  bool after = false;
  host_call(s, "thrower", {}, [] { throw 7; });
  host_call(s, "after", {}, [&] { after = true; });
  s.synchronize();
  EXPECT_TRUE(after);
  EXPECT_EQ(reports::taken().size(), 1U);
}

TEST(a_thread_that_is_not_known, destroys_nothing_and_is_told_of) {
  simulated dev{1};
  const reports quiet;
  pool memory{dev, "x"};
  std::optional<stream> s{dev.dev()};
  std::optional<buffer<int>> x{std::in_place, memory, std::size_t{4}, *s};
  std::thread{[&] {
    x.reset();
    s.reset();
  }}.join();
  EXPECT_THROW(dev.dev().api().create_event(here()), device_error);
  EXPECT_EQ(dev.kinds(), std::vector{finding_kind::misuse});
}

}  // namespace
}  // namespace reprise::test
