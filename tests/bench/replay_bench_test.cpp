// What `bench replay` runs and counts, and that its own checks bite. Never how long it took.
#include "bench/replay/replay_bench.hpp"

#include <gtest/gtest.h>

#include "bench/replay/chain.hpp"
#include "bench/replay/chain_step.hpp"
#include "reprise/base/error.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

class replay_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  replay_bench_report run(std::vector<std::int64_t> nodes, int repeats) {
    return run_replay_bench(opened, {std::move(nodes), repeats}, tell);
  }

  device opened = test::open_for_test(GetParam());
  std::size_t told = 0;
  progress tell = [this](std::string_view, std::size_t, std::size_t) { ++told; };
};

INSTANTIATE_TEST_SUITE_P(devices, replay_bench_test, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(replay_bench_test, every_way_is_called_alike_and_gives_the_bits_of_the_eager_run) {
  const replay_bench_report report = run({1, 2, 7}, 4);
  const bool gpu = GetParam() != "cpu";
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.bare, gpu);
  EXPECT_EQ(report.timed_by_events, gpu);
  ASSERT_EQ(report.rows.size(), 3U * 10U);
  // Four rounds of comparing; a timed round calls once more where CUDA events time the device.
  const std::uint64_t calls = 4 + 4 * (gpu ? 2 : 1);
  for (const replay_row& row : report.rows) {
    SCOPED_TRACE(std::string{name_of(row.how)} + " of " + std::to_string(row.nodes));
    const bool measured = gpu || row.how != contest::bare;
    EXPECT_EQ(row.measured, measured);
    EXPECT_EQ(row.calls, measured ? calls : 0U);
    EXPECT_EQ(row.host_us.count, measured ? 4U : 0U);
    EXPECT_EQ(row.device_us.count, measured ? 4U : 0U);
    EXPECT_TRUE(row.equal);
    EXPECT_EQ(row.counts.captured, row.how == contest::replay ? 1U : 0U);
    EXPECT_EQ(row.counts.replayed, row.how == contest::replay ? calls - 1 : 0U);
    EXPECT_EQ(row.counts.eager, row.how == contest::eager ? calls : 0U);
  }
  EXPECT_EQ(report.added.size(), gpu ? 3U * 6U : 0U);
  EXPECT_GT(told, 0U);
}

TEST_P(replay_bench_test, replays_stand_under_1_8_and_32_facts) {
  std::vector<int> facts;
  for (const replay_row& row : run({3}, 1).rows) {
    if (row.how == contest::replay && row.staged) facts.push_back(row.facts);
  }
  EXPECT_EQ(facts, (std::vector<int>{1, 8, 32}));
}

TEST_P(replay_bench_test, a_staged_chain_reads_the_block_of_its_own_call) {
  stream work{opened};
  pool memory{opened, "test"};
  const chain_sources sources{memory, work};
  const chain_step staged{sources, 3, 8, true};
  const chain_step plain{sources, 3, 8, false};
  replay_cache cache{opened};
  const auto first_of = [&](const chain_step& chain, float value) {
    const std::vector<float> block(chain_elements, value);
    const step_result done = chain.run(cache, work, block);
    float first = 0;
    copy(work, read<float>{done[chain.out()].get().subview(0, 1)},
         write<float>{view<float>{&first, 1}});
    work.synchronize();
    return first;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(first_of(staged, 1.0F), 0.9F) << "normalised: the sign of the block is left";
    EXPECT_LT(first_of(staged, -1.0F), -0.9F);
    EXPECT_EQ(first_of(plain, 1.0F), first_of(plain, -1.0F)) << "nothing is staged";
  }
}

TEST_P(replay_bench_test, options_that_say_nothing_are_refused) {
  EXPECT_THROW(run({}, 1), usage_error);
  EXPECT_THROW(run({0}, 1), usage_error);
  EXPECT_THROW(run({10, -1}, 1), usage_error);
  EXPECT_THROW(run({100'001}, 1), usage_error);
  EXPECT_THROW(run({1}, 0), usage_error);
  EXPECT_EQ(told, 0U);
}

class replay_bench_checks : public ::testing::Test {
 protected:
  static replay_row row_of(contest how) {
    replay_row row;
    row.nodes = 10;
    row.how = how;
    row.calls = 8;
    if (how == contest::replay) row.counts.captured = 1;
    if (how == contest::replay) row.counts.replayed = 7;
    if (how == contest::eager) row.counts.eager = 8;
    return row;
  }
  static std::string failure_of(const replay_row& row) {
    replay_bench_report report;
    report.rows = {row};
    return report.failure();
  }
};

TEST_F(replay_bench_checks, a_run_as_planned_has_no_failure) {
  for (const contest how : {contest::eager, contest::bare, contest::replay}) {
    EXPECT_EQ(failure_of(row_of(how)), "") << name_of(how);
  }
}

TEST_F(replay_bench_checks, a_replay_that_ran_eagerly_even_once_is_told) {
  replay_row row = row_of(contest::replay);
  row.counts.replayed = 6;
  row.counts.eager = 1;
  EXPECT_NE(failure_of(row).find("replay of 10 nodes"), std::string::npos) << failure_of(row);
  row = row_of(contest::replay);
  row.counts.captured = 2;
  row.counts.replayed = 6;
  EXPECT_NE(failure_of(row), "") << "recorded twice";
}

TEST_F(replay_bench_checks, an_eager_run_that_was_replayed_is_told) {
  replay_row row = row_of(contest::eager);
  row.counts.eager = 7;
  row.counts.replayed = 1;
  EXPECT_NE(failure_of(row), "");
}

TEST_F(replay_bench_checks, other_bits_are_told) {
  for (const contest how : {contest::bare, contest::replay}) {
    replay_row row = row_of(how);
    row.equal = false;
    EXPECT_NE(failure_of(row).find("differs"), std::string::npos) << name_of(how);
  }
}

TEST(walk_chain, reads_what_the_node_before_wrote_and_ends_in_the_output) {
  float from = 0;
  float ping = 0;
  float pong = 0;
  float out = 0;
  std::vector<std::pair<const float*, float*>> seen;
  const auto note = [&](const float* a, float* b) { seen.emplace_back(a, b); };
  walk_chain(1, {&from, &ping, &pong, &out}, note);
  EXPECT_EQ(seen, (decltype(seen){{&from, &out}}));
  seen.clear();
  walk_chain(4, {&from, &ping, &pong, &out}, note);
  EXPECT_EQ(seen, (decltype(seen){{&from, &ping}, {&ping, &pong}, {&pong, &ping}, {&ping, &out}}));
}

}  // namespace
}  // namespace reprise::bench
