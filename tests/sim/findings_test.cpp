// Each kind of fault that the adversary finds: by name, with both parties.
#include <atomic>
#include <optional>
#include <thread>

#include "tests/sim/simulated.hpp"

namespace reprise::test {
namespace {

using sim::finding_kind;

constexpr std::uint64_t seeds = 40;

// Found under every seed, as this kind, in words that name all of `parts`.
template <class Scenario>
void expect_found(finding_kind kind, const std::vector<std::string>& parts, Scenario&& scenario) {
  std::uint64_t seed = 0;
  for (const sim::finding& f : first_findings(seeds, scenario)) {
    SCOPED_TRACE("seed " + std::to_string(++seed));
    ASSERT_FALSE(f.text.empty()) << "nothing was found";
    EXPECT_EQ(sim::name_of(f.kind), sim::name_of(kind)) << f.text;
    for (const std::string& part : parts) EXPECT_TRUE(has(f.text, part)) << part << ": " << f.text;
  }
}

template <class Scenario>
void expect_nothing(Scenario&& scenario) {
  std::uint64_t seed = 0;
  for (const sim::finding& f : first_findings(seeds, scenario)) {
    EXPECT_EQ(f.text, "") << "seed " << ++seed;
  }
}

TEST(a_race, is_found_between_streams_that_nothing_orders) {
  const auto scenario = [](device_ref dev, bool ordered) {
    const stream a{dev};
    const stream b{dev};
    pool memory{dev, "weights"};
    const buffer<int> x{memory, 64, a};
    const buffer<int> y{memory, 64, b};
    order(a, b);
    fill(a, write<int>{x}, 1);
    if (ordered) order(a, b);
    copy(b, read<int>{x}, write<int>{y});
    order(b, a);
  };
  expect_nothing([&](device_ref dev) { scenario(dev, true); });
  for (const sim::finding& f : first_findings(seeds, [&](device_ref d) { scenario(d, false); })) {
    // Whichever runs first: a race, or a read of what nobody has written yet.
    ASSERT_TRUE(f.kind == finding_kind::race) << f.text;
    for (const char* part : {"'fill' on stream 1 (findings_test.cpp:", "'copy' on stream 2",
                             "pool 'weights'", "nothing orders"}) {
      EXPECT_TRUE(has(f.text, part)) << part << ": " << f.text;
    }
  }
}

// As a drain does: the host sees a word that a work wrote last, and copies what it wrote before.
TEST(a_race, is_none_where_the_host_has_acquired_the_word_of_the_writer) {
  const auto scenario = [](device_ref dev, bool acquired) {
    const stream a{dev};
    const stream b{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, a};
    const buffer<int> y{memory, 64, b};
    const pinned<int> word{dev, 1};
    word[0] = 0;
    order(a, b);
    fill(a, write<int>{x}, 1);
    fill(a, write<int>{word}, 1);
    wait_until(dev, [&] { return std::atomic_ref{word[0]}.load(std::memory_order_acquire) == 1; });
    if (acquired) dev.api().acquired(reinterpret_cast<const std::byte*>(word.data()));
    copy(b, read<int>{x}, write<int>{y});
    order(b, a);
    a.synchronize();
  };
  expect_nothing([&](device_ref dev) { scenario(dev, true); });
  expect_found(finding_kind::race, {"'fill' on stream 1", "'copy' on stream 2", "nothing orders"},
               [&](device_ref dev) { scenario(dev, false); });
}

TEST(a_race, is_found_between_a_read_and_a_write_that_does_not_wait_for_it) {
  const auto scenario = [](device_ref dev, bool ordered) {
    const stream a{dev};
    const stream b{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, a};
    const buffer<int> y{memory, 64, a};
    fill(a, write<int>{x}, 1);
    order(a, b);
    copy(a, read<int>{x}, write<int>{y});
    if (ordered) order(a, b);
    fill(b, write<int>{x}, 2);
    order(b, a);
  };
  expect_nothing([&](device_ref dev) { scenario(dev, true); });
  expect_found(finding_kind::race, {"'copy' on stream 1", "'fill' on stream 2", "nothing orders"},
               [&](device_ref dev) { scenario(dev, false); });
}

TEST(a_race, is_found_between_branches_of_a_graph) {
  const auto scenario = [](device_ref dev, bool early) {
    const stream a{dev};
    const stream b{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, a};
    const graph made = capture(a, [&](stream_ref c) {
      event forked{dev};
      event joined{dev};
      forked.record(c);
      forked.wait(b);
      if (early) fill(c, write<int>{x}, 1);
      fill(b, write<int>{x}, 2);
      joined.record(b);
      joined.wait(c);
      fill(c, write<int>{x}, 3);
    });
    made.instantiate(a).launch(a);
  };
  expect_nothing([&](device_ref dev) { scenario(dev, false); });
  expect_found(finding_kind::race, {"'fill' of launch 1", "nothing orders"},
               [&](device_ref dev) { scenario(dev, true); });
}

TEST(a_race, is_found_between_a_copy_and_the_host_that_did_not_wait_for_it) {
  const auto scenario = [](device_ref dev, int waits) {
    const stream s{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, s};
    const pinned<int> host{dev, 64};
    fill(s, write<int>{x}, 1);
    copy(s, read<int>{x}, write<int>{host});
    event passed{dev};
    passed.record(s);
    if (waits == 1) s.synchronize();
    if (waits == 2) wait_until(dev, [&] { return passed.finished(); });
    sim::controls_of(dev)->host_touches(host.data(), 256, false);
    s.synchronize();
  };
  expect_nothing([&](device_ref dev) { scenario(dev, 1); });
  expect_nothing([&](device_ref dev) { scenario(dev, 2); });
  expect_found(finding_kind::race, {"the host (findings_test.cpp:", "'copy' on stream 1"},
               [&](device_ref dev) { scenario(dev, 0); });
}

TEST(memory_that_was_freed, is_not_to_be_touched) {
  expect_found(finding_kind::use_after_free, {"'copy' on stream 2", "pool 'x'", "stream 1"},
               [](device_ref dev) {
                 const stream a{dev};
                 const stream b{dev};
                 pool memory{dev, "x"};
                 std::optional<buffer<int>> x{std::in_place, memory, std::size_t{64}, a};
                 const buffer<int> y{memory, 64, b};
                 fill(a, write<int>{*x}, 1);
                 order(a, b);
                 copy(b, read<int>{*x}, write<int>{y});
                 x.reset();  // on stream a, which does not wait for b
                 order(b, a);
               });
}

TEST(memory_that_was_freed, in_a_graph_is_not_to_be_read_behind_its_launch) {
  const auto scenario = [](device_ref dev, bool kept) {
    const stream s{dev};
    pool memory{dev, "x"};
    const buffer<int> out{memory, 64, s};
    view<int> inside;
    const graph made = capture(s, [&](stream_ref c) {
      const buffer<int> temporary{memory, 64, c};
      inside = temporary;
      fill(c, write<int>{temporary}, 7);
      copy(c, read<int>{temporary}, write<int>{out});
    });
    const executable step = made.instantiate(s);
    step.launch(s);
    EXPECT_EQ(fetched(s, kept ? out.all() : inside).size(), 64U);
  };
  expect_nothing([&](device_ref dev) { scenario(dev, true); });
  expect_found(finding_kind::use_after_free, {"'copy' on stream 1", "taking back 256 bytes"},
               [&](device_ref dev) { scenario(dev, false); });
}

TEST(memory_that_was_freed, past_the_end_of_a_block_is_nobodys) {
  expect_found(finding_kind::use_after_free, {"'fill' on stream 1", "bytes [256, 260)"},
               [](device_ref dev) {
                 const stream s{dev};
                 pool memory{dev, "x"};
                 const buffer<int> x{memory, 64, s};
                 fill(s, write<int>{view<int>{x.all().data(), 65}}, 1);
               });
}

TEST(memory_that_nobody_wrote, is_not_to_be_read) {
  const auto scenario = [](device_ref dev, std::size_t written) {
    const stream s{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, s};
    const buffer<int> y{memory, 64, s};
    fill(s, write<int>{x.all().subview(0, written)}, 1);
    // To copy it is no fault, and what is copied is as unwritten.
    copy(s, read<int>{x}, write<int>{y});
    EXPECT_EQ(fetched(s, y.all()).size(), 64U);
  };
  expect_nothing([&](device_ref dev) { scenario(dev, 64); });
  expect_found(finding_kind::unwritten_read, {"'copy' on stream 1", "never written"},
               [&](device_ref dev) { scenario(dev, 63); });
}

TEST(memory_that_nobody_wrote, shows_as_not_a_number) {
  const simulated dev{1, {.takes_fault_points = false, .stops_at_findings = false}};
  const stream s{dev.dev()};
  pool memory{dev, "x"};
  const float* before = nullptr;
  {
    const buffer<float> used{memory, 8, s};
    before = used.all().data();
    fill(s, write<float>{used}, 1.0F);
  }
  const buffer<float> x{memory, 8, s};
  EXPECT_EQ(x.all().data(), before) << "it is not the same memory";
  for (const float value : fetched(s, x.all())) EXPECT_TRUE(value != value);
}

TEST(a_stale_source, is_found_when_pinned_memory_changes_under_a_copy) {
  const auto scenario = [](device_ref dev, bool waits, bool in_a_graph) {
    const stream s{dev};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, s};
    const pinned<int> host{dev, 64};
    const graph made = capture(s, [&](stream_ref c) { copy(c, read<int>{host}, write<int>{x}); });
    const executable step = made.instantiate(s);
    sim::controls_of(dev)->hold(stream_ref{s}.id());
    host[0] = 1;
    if (in_a_graph) {
      step.launch(s);
    } else {
      copy(s, read<int>{host}, write<int>{x});
    }
    if (waits) {
      sim::controls_of(dev)->release(stream_ref{s}.id());
      s.synchronize();
    }
    host[0] = 2;
    sim::controls_of(dev)->release(stream_ref{s}.id());
    s.synchronize();
  };
  for (const bool in_a_graph : {false, true}) {
    expect_nothing([&](device_ref dev) { scenario(dev, true, in_a_graph); });
    expect_found(finding_kind::stale_source, {"'copy'", "on stream 1", "the host has changed"},
                 [&](device_ref dev) { scenario(dev, false, in_a_graph); });
  }
}

TEST(a_stale_source, is_found_when_pinned_memory_dies_before_its_copy) {
  expect_found(finding_kind::stale_source, {"'copy' on stream 1", "pinned block", "released"},
               [](device_ref dev) {
                 const stream s{dev};
                 pool memory{dev, "x"};
                 const buffer<int> x{memory, 64, s};
                 sim::controls_of(dev)->hold(stream_ref{s}.id());
                 {
                   const pinned<int> host{dev, 64};
                   copy(s, read<int>{host}, write<int>{x});
                 }
                 sim::controls_of(dev)->release(stream_ref{s}.id());
               });
}

TEST(a_leak, is_found_at_the_close_and_says_what_is_held) {
  simulated dev{1};
  device_api& api = dev.dev().api();
  const auto here = std::source_location::current();
  api.create_event(here);
  api.allocate(memory_kind::device, 1024, here);
  dev.close();
  ASSERT_EQ(dev.kinds(), std::vector{finding_kind::leak});
  const std::string& text = dev.seen().findings[0].text;
  EXPECT_TRUE(has(text, "1 event")) << text;
  EXPECT_TRUE(has(text, "1024 bytes in 1 blocks")) << text;
}

TEST(a_misuse, is_a_call_from_inside_a_host_call) {
  expect_found(finding_kind::misuse, {"host call", "'reenter' on stream 1", "record"},
               [](device_ref dev) {
                 const stream s{dev};
                 event passed{dev};
                 host_call(s, "reenter", {}, [&] {
                   try {
                     passed.record(s);
                   } catch (const device_error&) {
                   }
                 });
                 s.synchronize();
               });
}

TEST(a_misuse, is_a_call_from_a_thread_that_the_device_does_not_know) {
  simulated dev{1};
  std::string message;
  std::thread{[&] {
    message = message_of<usage_error>([&] { const stream s{dev.dev()}; });
  }}.join();
  EXPECT_TRUE(has(message, "does not know")) << message;
  EXPECT_TRUE(has(message, "host_thread")) << message;
  dev.close();
  EXPECT_EQ(dev.kinds(), std::vector{finding_kind::misuse});
}

TEST(a_finding, fails_the_next_call_that_can_fail_once) {
  const simulated dev{1};
  const stream s{dev.dev()};
  pool memory{dev, "x"};
  const buffer<int> x{memory, 64, s};
  const std::string message = message_of<device_error>([&] { (void)fetched(s, x.all()); });
  EXPECT_TRUE(has(message, "unwritten read")) << message;
  fill(s, write<int>{x}, 1);
  EXPECT_EQ(fetched(s, x.all()), std::vector<int>(64, 1));
}

TEST(a_finding, has_the_trace_that_led_there) {
  simulated dev{1};
  {
    const stream s{dev.dev()};
    pool memory{dev, "x"};
    const buffer<int> x{memory, 64, s};
    EXPECT_THROW((void)fetched(s, x.all()), device_error);
  }
  ASSERT_EQ(dev.seen().findings.size(), 1U);
  const std::size_t lines = dev.seen().findings[0].trace_lines;
  ASSERT_GE(lines, 3U);
  EXPECT_TRUE(has(dev.seen().trace[lines - 1], "FOUND unwritten read"));
  EXPECT_TRUE(has(dev.seen().trace[lines - 2], "runs 'copy' on stream 1"));
}

}  // namespace
}  // namespace reprise::test
