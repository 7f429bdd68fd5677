// What `bench sdm` holds its figures against, and that its own checks bite.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bench/measure/silence.hpp"
#include "bench/sdm/called_op.hpp"
#include "bench/sdm/digest.hpp"
#include "bench/sdm/moved_bytes.hpp"
#include "bench/sdm/repeated_step.hpp"
#include "bench/sdm/sdm_bench.hpp"
#include "reprise/device/enqueue.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

constexpr sdm_sizes tiny{
    .streams = 2, .slots = 36, .width = 24, .tokens = 20, .writes = 3, .reads = 4, .chunk = 8};

class sdm_bench_bits : public ::testing::TestWithParam<std::string> {
 protected:
  const silence eager_runs_are_planned;
  device opened = test::open_for_test(GetParam());
  stream work{opened};
  pool memory{opened, "test"};
  byte_budget budget{byte_budget::unlimited};
};

INSTANTIATE_TEST_SUITE_P(devices, sdm_bench_bits, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(sdm_bench_bits, one_bit_or_another_place_is_another_digest) {
  const buffer<float> here{memory, 5, work};
  const auto digest_with = [&](std::vector<float> values) {
    copy(work, read<float>{view<const float>{values.data(), values.size()}}, write{here});
    return digest_of(work, as_tensor(here.all()), 0);
  };
  const std::uint64_t first = digest_with({1, 2, 3, 4, 5});
  EXPECT_EQ(digest_with({1, 2, 3, 4, 5}), first);
  EXPECT_NE(digest_with({1, 2, 3, 4, std::nextafter(5.0F, 6.0F)}), first);
  EXPECT_NE(digest_with({2, 1, 3, 4, 5}), first);
  EXPECT_NE(digest_with({3, 4, 1, 2, 5}), first);
  EXPECT_NE(digest_of(work, as_tensor(here.all()), 1), digest_of(work, as_tensor(here.all()), 0));
}

// A body that does something else each time is what a wrong replay looks like.
TEST_P(sdm_bench_bits, a_replay_with_other_bits_is_told) {
  const buffer<std::int32_t> to{memory, 4, work};
  signature declared{"restless"};
  declared.overwrites("to", as_tensor(to.all()));
  std::int32_t run_number = 0;
  repeated_step step{work, declared, [&](step_scope& run) { fill(run, write{to}, ++run_number); }};
  step.check();
  EXPECT_NE(step.counts().failure().find("restless: what it wrote differs"), std::string::npos)
      << step.counts().failure();
}

// Leaves these numbers, and nothing else.
struct filling {
  float y = 1;
  float state = 2;
  float dx = 3;
  float dw = 4;
};

class filler {
  signature declared_{"filler"};
  const filling* with_;
  const parameter* weight_;

 public:
  filler(const filling& with, parameter& weight)
      : with_{&with},
        weight_{&weight},
        x{declared_.in<float>("x", {4})},
        y{declared_.out<float>("y")},
        state{declared_.returned_state<float>("state")} {
    declared_.trains("weight", weight);
  }

  const input<float> x;
  const output<float> y;
  const output<float> state;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const {
    fill(run, write<float>{run.make(y, {4})}, with_->y);
    fill(run, write<float>{run.make(state, {4})}, with_->state);
  }
  void backward(backward_scope& run) const {
    fill(run, write<float>{run.grad(x)}, with_->dx);
    fill(run, write<float>{run.add_to(*weight_).to}, with_->dw);
  }
};

TEST_P(sdm_bench_bits, outputs_states_and_all_gradients_of_a_pair_are_looked_at) {
  const sdm_bank weight{memory, work, 2, 2};
  parameter trained = weight.at;
  const buffer<float> four{memory, 4, work};
  fill(work, write{four}, 1.0F);
  const auto digest_with = [&](const filling& with) {
    const filler op{with, trained};
    const op_to_call what{"filler",
                          erase(std::make_shared<const filler>(op)),
                          {operand{op.x(four.all())}},
                          gradient_of(op.y, view<const float>{four.all()}),
                          {&trained}};
    return called_op{work, what, budget, false}.run_and_look();
  };
  const std::uint64_t first = digest_with({});
  EXPECT_EQ(digest_with({}), first);
  EXPECT_NE(digest_with({.y = 9}), first);
  EXPECT_NE(digest_with({.state = 9}), first);
  EXPECT_NE(digest_with({.dx = 9}), first);
  EXPECT_NE(digest_with({.dw = 9}), first);
}

TEST(sdm_bench_floor, counts_each_row_that_a_token_names) {
  const moved_bytes small = moved_by_op(small_sdm_shape().sizes(64), 2);
  // 8 + 8 read, 8 written, 8 saved, of 512 bytes; three rows of 1024.
  EXPECT_EQ(small.forward, 256 * (32 * 512 + 3 * 1024));
  // Of the cotangent 8 gathered, 16 read, 16 written; 8 saved ones, 8 written, 8 read.
  EXPECT_EQ(small.backward, 256 * (64 * 512 + 3 * 1024));
  const moved_bytes odd = moved_by_op(tiny, 2);
  EXPECT_EQ(odd.forward, 40 * ((3 + 4 + 3 + 3) * 48 + 3 * 96));
  EXPECT_EQ(odd.backward, 40 * ((3 + 7 + 7 + 3 + 3 + 4) * 48 + 3 * 96));
  sdm_sizes in_fives = tiny;
  in_fives.chunk = 5;
  EXPECT_EQ(moved_by_op(in_fives, 2).both(), odd.both()) << "a chunk changes speed only";
}

TEST(sdm_bench_floor, of_whole_banks_counts_the_learned_one_once_and_each_streams) {
  const moved_bytes passes = moved_by_bank_passes(small_sdm_shape().sizes(64), 2);
  const std::int64_t learned = 1024 * 256 * 4;
  const std::int64_t banks = 2 * 1024 * 256 * 2;
  EXPECT_EQ(passes.forward, learned + banks);
  EXPECT_EQ(passes.backward, banks + banks + learned);
}

TEST(sdm_bench_call, draws_distinct_ascending_slots_of_the_tokens_own_stream) {
  sdm_sizes sizes = tiny;
  sizes.tokens = 200;
  std::mt19937_64 random{1};
  const std::vector<std::int32_t> rows = draw_slots(sizes, 5, random);
  ASSERT_EQ(rows.size(), 2U * 200 * 5);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t stream = static_cast<std::int64_t>(i) / (200 * 5);
    ASSERT_EQ(rows[i] / 36, stream);
    ASSERT_TRUE(i % 5 == 0 || rows[i] > rows[i - 1]);
  }
  EXPECT_EQ((std::set<std::int32_t>{rows.begin(), rows.end()}).size(), 72U)
      << "no slot is left out";
  std::mt19937_64 again{1};
  EXPECT_EQ(draw_slots(sizes, 5, again), rows);
  std::mt19937_64 other{2};
  EXPECT_NE(draw_slots(sizes, 5, other), rows);
  sizes.slots = 3;
  EXPECT_EQ(draw_slots(sizes, 3, random).at(2), 2) << "as many as there are";
}

class sdm_bench_checks : public ::testing::Test {
 protected:
  static sdm_step_counts replayed() {
    sdm_step_counts counts{"addressing", 8, 3, {}, {}, true};
    counts.replays.captured = 1;
    counts.replays.replayed = 7;
    counts.eager.eager = 3;
    return counts;
  }
  static sdm_figure limited() {
    sdm_figure figure;
    figure.us = 30;
    figure.tokens = 10;
    figure.floor_bytes = 6000;
    figure.bytes_per_us = 300;
    figure.limit_us = 30;
    figure.is_judged = true;
    return figure;
  }
};

TEST_F(sdm_bench_checks, a_step_that_ran_otherwise_or_left_other_bits_is_told) {
  EXPECT_EQ(replayed().failure(), "");
  for (const auto& spoil : std::vector<void (*)(sdm_step_counts&)>{
           [](sdm_step_counts& c) { --c.replays.replayed; },
           [](sdm_step_counts& c) { ++c.replays.eager; },
           [](sdm_step_counts& c) { c.replays.captured = 2; }, [](sdm_step_counts& c) { ++c.runs; },
           [](sdm_step_counts& c) { --c.eager.eager; },
           [](sdm_step_counts& c) { c.eager.captured = 1; },
           [](sdm_step_counts& c) { c.equal = false; }}) {
    sdm_step_counts counts = replayed();
    spoil(counts);
    EXPECT_NE(counts.failure().find("addressing"), std::string::npos);
  }
}

TEST_F(sdm_bench_checks, any_part_that_failed_fails_the_report) {
  sdm_bench_report report;
  report.sizes.resize(2);
  report.decode.emplace();
  report.growth.emplace();
  report.sizes[1].steps = report.decode->steps = report.growth->steps = {replayed()};
  report.sizes[1].ops = report.growth->ops = {op_counts{"op", {}, {}, true}};
  EXPECT_EQ(report.failure(), "");
  for (sdm_step_counts* const one :
       {&report.sizes[1].steps[0], &report.decode->steps[0], &report.growth->steps[0]}) {
    one->equal = false;
    EXPECT_NE(report.failure(), "");
    one->equal = true;
  }
  for (op_counts* const one : {&report.sizes[1].ops[0], &report.growth->ops[0]}) {
    one->equal = false;
    EXPECT_NE(report.failure(), "");
    one->equal = true;
  }
}

TEST_F(sdm_bench_checks, a_figure_is_judged_on_a_gpu_alone_and_fails_nothing) {
  sdm_figure figure = limited();
  EXPECT_EQ(figure.floor_us(), 20.0);
  EXPECT_EQ(figure.over_floor(), 1.5);
  EXPECT_EQ(figure.us_per_token(), 3.0);
  EXPECT_EQ(figure.within(), true);
  figure.us = 30.1;
  EXPECT_EQ(figure.within(), false);
  figure.is_judged = false;
  EXPECT_EQ(figure.within(), std::nullopt);
  figure = limited();
  figure.limit_us.reset();
  EXPECT_EQ(figure.within(), std::nullopt);
}

TEST_F(sdm_bench_checks, growth_is_of_a_token_without_whole_banks_over_the_first_row) {
  growth_costs growth;
  growth.rows = {{100, {110, 110, 110, 5}, 10, 10}, {200, {135, 135, 135, 5}, 20, 10}};
  EXPECT_NEAR(growth.percent(growth.rows[1]), 15, 1e-9);
  EXPECT_EQ(growth.within(), std::nullopt) << "on no GPU";
  growth.is_judged = true;
  growth.rows[1].op.median = 134;
  EXPECT_EQ(growth.within(), true);
  growth.rows[1].op.median = 136;
  EXPECT_EQ(growth.within(), false);
}

}  // namespace
}  // namespace reprise::bench
