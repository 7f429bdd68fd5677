// What `bench sdm` runs and counts. Never how long it took.
#include "bench/sdm/sdm_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/measure/silence.hpp"
#include "reprise/base/error.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

// Chunks that do not divide the tokens, more reads than writes.
sdm_shape tiny() {
  return {.name = "tiny",
          .streams = 2,
          .tokens = 20,
          .side = 6,
          .width = 24,
          .key_width = 8,
          .writes = 3,
          .reads = 4,
          .chunks = {{8, 1e12}},
          .step_limit_us = 1e12};
}

class sdm_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  bool gpu() const { return opened.name().starts_with("cuda"); }
  sdm_tools tools(int rounds) { return {memory, work, budget, rounds, gpu(), 1000.0, tell}; }
  void expect_figure(const sdm_figure& figure, std::size_t rounds, bool is_difference) const {
    SCOPED_TRACE(figure.what);
    EXPECT_TRUE(std::isfinite(figure.us));
    EXPECT_EQ(figure.measured.count, is_difference ? 0U : rounds);
    if (!is_difference) {
      EXPECT_GT(figure.us, 0);
      EXPECT_EQ(figure.us, figure.measured.median);
    }
    EXPECT_EQ(figure.us_per_token(), figure.us / static_cast<double>(figure.tokens));
    EXPECT_EQ(figure.within().has_value(), gpu() && figure.limit_us.has_value());
  }

  const silence eager_runs_are_planned;
  device opened = test::open_for_test(GetParam());
  stream work{opened};
  pool memory{opened, "test"};
  byte_budget budget{byte_budget::unlimited};
  std::size_t told = 0;
  progress tell = [this](std::string_view, std::size_t, std::size_t) { ++told; };
};

INSTANTIATE_TEST_SUITE_P(devices, sdm_bench_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

const sdm_figure& named(const std::vector<sdm_figure>& figures, std::string_view what) {
  const auto at = std::ranges::find(figures, what, &sdm_figure::what);
  if (at == figures.end()) throw std::out_of_range{std::string{what}};
  return *at;
}

// Three pairs go before the rounds, eagerly one; a round is warm-up, and each has two pairs.
TEST_P(sdm_bench_test, op_and_layer_are_replayed_with_the_bits_of_their_eager_runs) {
  sdm_data data{memory, work, tiny()};
  const size_costs size = measure_size(tools(3), data, data.shape.chunks.front());
  ASSERT_EQ(size.ops.size(), 4U);
  for (const op_counts& one : size.ops) {
    SCOPED_TRACE(one.what);
    EXPECT_EQ(one.failure(), "");
    EXPECT_TRUE(one.equal);
    const bool is_replayed = one.what.ends_with("replayed");
    EXPECT_EQ(one.seen.forward_capture, is_replayed ? 1U : 0U);
    EXPECT_EQ(one.seen.backward_capture, is_replayed ? 1U : 0U);
    EXPECT_EQ(one.seen.forward_replay, is_replayed ? 10U : 0U);
    EXPECT_EQ(one.seen.backward_replay, is_replayed ? 10U : 0U);
    EXPECT_EQ(one.seen.eager_forwards(), is_replayed ? 0U : 9U);
    EXPECT_EQ(one.seen.stale_replay, 0U);
  }
  EXPECT_EQ(size.ops[0].what, "tiny, chunk 8, op, replayed");
  EXPECT_EQ(size.ops[3].what, "tiny, chunk 8, layer, eager");
  ASSERT_EQ(size.steps.size(), 4U);
  for (const sdm_step_counts& one : size.steps) {
    SCOPED_TRACE(one.what);
    EXPECT_EQ(one.failure(), "");
    EXPECT_EQ(one.replays.captured, 1U);
    EXPECT_EQ(one.replays.replayed, 6U) << "three runs are compared, and four timed";
    EXPECT_EQ(one.eager.eager, 3U);
  }
  EXPECT_GT(told, 0U);
}

TEST_P(sdm_bench_test, each_figure_of_a_size_is_there_with_its_floor) {
  sdm_data data{memory, work, tiny()};
  const size_costs size = measure_size(tools(2), data, data.shape.chunks.front());
  std::vector<std::string> names;
  for (const sdm_figure& one : size.figures) {
    names.push_back(one.what);
    expect_figure(one, 2, one.what.ends_with("without whole-bank passes"));
    EXPECT_EQ(one.tokens, 40);
    const bool has_floor = one.what.find("layer") == std::string::npos &&
                           one.what.find("addressing") == std::string::npos;
    EXPECT_EQ(one.floor_us().has_value(), has_floor) << one.what;
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "op forward", "op backward", "op forward and backward", "op forward, eager",
                       "op backward, eager", "op forward and backward, eager", "initial bank",
                       "cotangent and gradient of the bank", "op forward without whole-bank passes",
                       "op backward without whole-bank passes",
                       "op forward and backward without whole-bank passes", "layer forward",
                       "layer backward", "layer forward and backward", "layer forward, eager",
                       "layer backward, eager", "layer forward and backward, eager", "addressing",
                       "addressing, backward"}));
  const sdm_figure& op = named(size.figures, "op forward and backward");
  EXPECT_EQ(op.floor_us(), (36480.0 + 63360.0) / 1000);
  EXPECT_EQ(named(size.figures, "op forward and backward without whole-bank passes").us,
            op.us - (named(size.figures, "initial bank").us +
                     named(size.figures, "cotangent and gradient of the bank").us));
  for (const sdm_figure& one : size.figures) {
    EXPECT_EQ(one.limit_us.has_value(), one.what == "layer forward and backward") << one.what;
  }
}

// A frame holds the rows before each chunk at least, and Reprise all that the frame has.
TEST_P(sdm_bench_test, what_op_and_layer_took_of_memory_is_told) {
  sdm_data data{memory, work, tiny()};
  const size_costs size = measure_size(tools(1), data, data.shape.chunks.front());
  ASSERT_EQ(size.held.size(), 2U);
  const std::size_t saved = 2 * 3 * 8 * 3 * 48;
  for (const sdm_held& one : size.held) {
    SCOPED_TRACE(one.what);
    EXPECT_GT(one.op_bytes, saved);
    EXPECT_GT(one.own_bytes, saved);
  }
}

TEST_P(sdm_bench_test, a_token_is_decoded_by_replays_one_behind_another) {
  sdm_data data{memory, work, tiny()};
  const decode_costs decode = measure_decode(tools(2), data);
  EXPECT_EQ(decode.sizes.streams, 1);
  EXPECT_EQ(decode.sizes.tokens, 1);
  ASSERT_EQ(decode.figures.size(), 2U);
  EXPECT_EQ(decode.figures[0].what, "sdm_step");
  EXPECT_EQ(decode.figures[0].limit_us, 1e12);
  EXPECT_EQ(decode.figures[1].what, "layer step");
  EXPECT_EQ(decode.figures[1].limit_us, std::nullopt);
  for (const sdm_figure& one : decode.figures) expect_figure(one, 2, false);
  for (const sdm_step_counts& one : decode.steps) {
    EXPECT_EQ(one.failure(), "");
    EXPECT_EQ(one.replays.captured, 1U);
    EXPECT_EQ(one.replays.replayed, 2U + 3 * decode_replays_in_a_row);
  }
}

TEST_P(sdm_bench_test, growth_has_a_row_for_each_number_of_slots) {
  const growth_costs growth = measure_growth(
      tools(2),
      {.tokens = 20, .width = 24, .writes = 3, .reads = 4, .chunk = 8, .slots = {40, 90, 300}});
  ASSERT_EQ(growth.rows.size(), 3U);
  EXPECT_EQ(growth.rows[2].slots, 300);
  EXPECT_EQ(growth.percent(growth.rows[0]), 0);
  EXPECT_EQ(growth.within().has_value(), gpu());
  for (const growth_row& row : growth.rows) {
    EXPECT_EQ(row.op.count, 2U);
    EXPECT_EQ(row.tokens, 20);
    EXPECT_GT(row.passes_us, 0);
    EXPECT_TRUE(std::isfinite(row.us_per_token()));
  }
  ASSERT_EQ(growth.ops.size(), 6U);
  for (const op_counts& one : growth.ops) EXPECT_EQ(one.failure(), "");
  EXPECT_EQ(growth.ops[4].what, "growth, 300 slots, replayed");
  EXPECT_EQ(growth.ops[4].seen.forward_replay, 4U);
  ASSERT_EQ(growth.steps.size(), 6U);
  for (const sdm_step_counts& one : growth.steps) EXPECT_EQ(one.failure(), "");
}

TEST_P(sdm_bench_test, options_that_say_nothing_are_refused) {
  const auto refused = [&](const sdm_bench_options& wrong, const std::string& with) {
    try {
      run_sdm_bench(opened, wrong, tell);
      ADD_FAILURE() << with;
    } catch (const usage_error& e) {
      EXPECT_NE(std::string{e.what()}.find(with), std::string::npos) << e.what();
    }
  };
  refused({.rounds = 0}, "--rounds");
  refused({.rounds = 1'000'001}, "--rounds");
  refused({.sizes = {"small", "middle"}}, "'middle'");
  refused({.sizes = {""}}, "--sizes");
  EXPECT_EQ(told, 0U);
}

class sdm_bench_run : public sdm_bench_test {};

INSTANTIATE_TEST_SUITE_P(devices, sdm_bench_run, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(sdm_bench_run, the_small_size_runs_whole_and_as_planned) {
  const sdm_bench_report report =
      run_sdm_bench(opened, {.rounds = 1, .sizes = {"small"}, .growth = false}, tell);
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.measured, std::vector<std::string>{"small"});
  ASSERT_EQ(report.sizes.size(), 1U);
  EXPECT_EQ(report.sizes[0].sizes, (sdm_sizes{.streams = 2,
                                              .slots = 1024,
                                              .width = 256,
                                              .tokens = 128,
                                              .writes = 8,
                                              .reads = 8,
                                              .chunk = 64}));
  EXPECT_EQ(named(report.sizes[0].figures, "layer forward and backward").limit_us, 350);
  ASSERT_TRUE(report.decode.has_value());
  EXPECT_EQ(report.decode->name, "small");
  EXPECT_EQ(report.decode->figures[0].limit_us, std::nullopt) << "the limit is of the large size";
  EXPECT_FALSE(report.growth.has_value());
  EXPECT_EQ(report.device_is_apart, gpu());
  EXPECT_GT(report.copies.bytes_per_us, 0);
}

TEST_P(sdm_bench_run, what_is_measured_by_default_is_all_on_a_gpu_and_the_small_size_elsewhere) {
  EXPECT_EQ(sizes_for(opened), gpu() ? (std::vector<std::string>{"small", "large"})
                                     : std::vector<std::string>{"small"});
}

}  // namespace
}  // namespace reprise::bench
