// Rule 18: pool bytes are exact per owner and come back; the driver's are an estimate.
#include "reprise/replay/cache.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_18, a_pool_counts_its_slabs_and_its_live_blocks) {
  EXPECT_EQ(memory().bytes(), 0U);
  EXPECT_EQ(memory().used(), 0U);
  {
    const block one{memory(), 1, s()};
    EXPECT_EQ(memory().used(), 256U);
    EXPECT_EQ(memory().bytes(), 64 * kib);
    const block more{memory(), 257, s()};
    EXPECT_EQ(memory().used(), 256U + 512U);
    const block large{memory(), 3000 * kib, s()};  // in pages of 2 MiB
    EXPECT_EQ(memory().used(), 256U + 512U + 3000 * kib);
    EXPECT_EQ(memory().bytes(), 64 * kib + 4096 * kib);
  }
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(memory().bytes(), 64 * kib + 4096 * kib);
  EXPECT_EQ(leased(), memory().bytes());
}

TEST_P(rule_18, the_last_block_of_a_pool_that_is_gone_gives_its_bytes_back) {
  std::optional<pool> early{dev()};
  std::optional<buffer<int>> late{std::in_place, *early, 64U, s()};
  early.reset();
  fill(s(), write<int>{*late}, 5);
  EXPECT_EQ(read_back(s(), *late), std::vector<int>(64, 5));
  EXPECT_EQ(leased(), 64 * kib);
  late.reset();
  EXPECT_EQ(leased(), 0U);
}

TEST_P(rule_18, slabs_of_a_pool_that_is_gone_are_trimmed_to_the_device) {
  const calls_since now{*counts};
  {
    pool short_lived{dev()};
    const block small{short_lived, 100, s()};
    const block large{short_lived, 5000 * kib, s()};
    EXPECT_EQ(leased(), 64 * kib + 6144 * kib);
    EXPECT_EQ(idle(), 0U);
  }
  EXPECT_EQ(leased(), 0U);
  EXPECT_EQ(idle(), 64 * kib + 6144 * kib);
  EXPECT_EQ(now[seam_call::allocate], 2U);
  EXPECT_EQ(now[seam_call::release], 0U);
  dev().trim();
  EXPECT_EQ(idle(), 0U);
  EXPECT_EQ(now[seam_call::release], 2U);
}

TEST_P(rule_18, nothing_is_trimmed_that_a_pool_still_holds) {
  const auto kept = filled<int>(10, 4);
  const calls_since now{*counts};
  dev().trim();
  EXPECT_EQ(now[seam_call::release], 0U);
  EXPECT_EQ(read_back(s(), kept), std::vector<int>(10, 4));
}

TEST_P(rule_18, D6_a_capture_given_up_a_thousand_times_holds_no_more_than_once) {
  const auto give_up = [&] {
    EXPECT_THROW(capture(s(),
                         [&](stream_ref c) {
                           const buffer<int> a{memory(), 300000, c};
                           const buffer<int> b{memory(), 30, c};
                           const buffer<int> d{memory(), 70000, c};
                           fill(c, write<int>{b}, 1);
                           throw usage_error{"no"};
                         }),
                 usage_error);
  };
  give_up();
  const std::size_t high_water = leased();
  EXPECT_GT(high_water, 0U);
  const calls_since now{*counts};
  for (int i = 1; i < 1000; ++i) give_up();
  EXPECT_EQ(leased(), high_water);
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(now[seam_call::allocate], 0U);
  EXPECT_EQ(now[seam_call::capture], 999U);
  expect_clean(s());
}

TEST_P(rule_18, D6_a_capture_given_up_leaves_nothing_of_a_pool_of_its_own) {
  const reports quiet;
  const calls_since now{*counts};
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW(capture(s(),
                         [&](stream_ref c) {
                           pool own{dev(), "inner"};
                           const buffer<int> y{own, 100, c};
                           fill(c, write<int>{y}, 1);
                           throw usage_error{"no"};
                         }),
                 usage_error);
  }
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  EXPECT_EQ(leased(), 0U);
  EXPECT_EQ(now[seam_call::allocate], 1U) << "the slab is lent again";
  dev().trim();
  EXPECT_EQ(now[seam_call::release], 1U);
  expect_clean(s());
}

TEST_P(rule_18, pinned_bytes_are_counted_while_they_are_held) {
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  const calls_since now{*counts};
  {
    pinned<std::uint16_t> first{dev(), 50};
    const pinned<std::uint8_t> second{dev(), 7};
    EXPECT_EQ(dev().pinned_bytes(), 107U);
    pinned<std::uint16_t> moved{std::move(first)};
    EXPECT_EQ(first.size(), 0U);  // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(moved.size(), 50U);
    EXPECT_EQ(dev().pinned_bytes(), 107U);
    moved = {};
    EXPECT_EQ(dev().pinned_bytes(), 7U);
  }
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  EXPECT_EQ(now[seam_call::allocate], 2U);
  EXPECT_EQ(now[seam_call::release], 2U);
}

TEST_P(rule_18, the_device_reports_its_own_memory) {
  const memory_figures figures = dev().memory();
  EXPECT_GT(figures.total, std::size_t{1} << 26);
  EXPECT_GT(figures.free, 0U);
  EXPECT_LE(figures.free, figures.total);
}

TEST_P(rule_18, the_drivers_bytes_per_node_are_one_figure_for_the_device) {
  const std::size_t first = api().bytes_per_node(std::source_location::current());
  const auto x = number();
  const executable kept = capture(s(), [&](stream_ref c) { append(c, x, 1); }).instantiate(s());
  EXPECT_EQ(api().bytes_per_node(std::source_location::current()), first);
  EXPECT_GT(first, 0U);
  EXPECT_LT(first, 64 * kib);
}

// Reconciled with the device's total: what many executables take is what the estimate says, within
// a factor of four and a page of 2 MiB, since the driver takes memory by pages.
TEST_P(rule_18, the_drivers_estimate_agrees_with_the_devices_total) {
  if (!on_cuda()) GTEST_SKIP() << "a simulated device has no driver, and its total is the host's";
  constexpr std::size_t works = 500;
  constexpr std::size_t executables = 100;
  constexpr std::size_t page = 2048 * kib;
  const auto x = number();
  const graph made = capture(s(), [&](stream_ref c) {
    for (std::size_t i = 0; i < works; ++i) append(c, x, 1);
  });
  const std::size_t estimate =
      works * executables * api().bytes_per_node(std::source_location::current());
  const std::size_t before = dev().memory().free;
  std::vector<executable> held;
  for (std::size_t i = 0; i < executables; ++i) held.push_back(made.instantiate(s()));
  s().synchronize();
  const std::size_t after = dev().memory().free;
  const std::size_t taken = before > after ? before - after : 0;
  RecordProperty("bytes_estimated", std::to_string(estimate));
  RecordProperty("bytes_taken", std::to_string(taken));
  EXPECT_LE(taken, 4 * estimate + page);
  EXPECT_LE(estimate, 4 * taken + page);
}

// A step that takes 1 MiB of scratch: whatever it held is given back, and replays hold no more.
TEST_P(rule_18, D13_a_thousand_replays_hold_what_the_first_did_and_it_all_comes_back) {
  signature declared{"scratching"};
  const input<std::int32_t> x = declared.in<std::int32_t>("x", {any});
  const output<std::int32_t> y = declared.out<std::int32_t>("y");
  const step what{declared, [&](step_scope& run) {
                    const view<std::int32_t> scratch = run.scratch<std::int32_t>({256 * 1024});
                    fill(run, write<std::int32_t>{scratch}, 1);
                    copy(run, read(run[x]), write<std::int32_t>{scratch});
                    copy(run, read<std::int32_t>{scratch.subview(0, 2)},
                         write<std::int32_t>{run.make(y, {2})});
                  }};
  const std::vector<std::int32_t> values{3, 4};
  const std::size_t before = leased();
  const calls_since now{*counts};
  {
    replay_cache cache{dev()};
    cache.run(s(), what, {x.from_host(values)});
    for (int i = 0; i < 8; ++i) cache.run(s(), what, {x.from_host(values)});
    const std::size_t held = leased();
    const std::size_t of_the_cache = cache.bytes().recordings;
    EXPECT_GE(held, before + 1024 * kib);
    for (int i = 0; i < 1000; ++i) cache.run(s(), what, {x.from_host(values)});
    EXPECT_EQ(leased(), held);
    EXPECT_EQ(cache.bytes().recordings, of_the_cache);
    EXPECT_EQ(cache.counts().replayed, 1008U);
  }
  EXPECT_EQ(leased(), before);
  dev().trim();
  EXPECT_EQ(now[seam_call::allocate], now[seam_call::release]);
}

}  // namespace
}  // namespace reprise::test
