#include "reprise/ops/sample.hpp"

#include <limits>
#include <map>
#include <numeric>

#include "reprise/ops/math.hpp"
#include "reprise/ops/philox.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

struct draw {
  float temperature = 1.0f;
  float top_p = 1.0f;
  std::uint64_t seed = 1;
  std::uint64_t counter = 0;
};

std::vector<std::int32_t> sampled(op_bench& bench, const std::vector<float>& logits,
                                  const std::vector<draw>& draws, place where = place::aligned) {
  std::vector<float> temperatures;
  std::vector<float> top_ps;
  std::vector<std::uint64_t> seeds;
  std::vector<std::uint64_t> counters;
  for (const draw& d : draws) {
    temperatures.push_back(d.temperature);
    top_ps.push_back(d.top_p);
    seeds.push_back(d.seed);
    counters.push_back(d.counter);
  }
  const auto from = bench.put(logits, where);
  const auto t = bench.put(temperatures);
  const auto p = bench.put(top_ps);
  const auto s = bench.put(seeds);
  const auto c = bench.put(counters);
  const auto to = bench.room<std::int32_t>(draws.size());
  launch(bench.on(), sample, read<float>{from.span()}, read<float>{t.span()}, read<float>{p.span()},
         read<std::uint64_t>{s.span()}, read<std::uint64_t>{c.span()},
         write<std::int32_t>{to.span()},
         static_cast<std::int64_t>(draws.empty() ? 1 : logits.size() / draws.size()));
  return bench.take(to);
}

__extension__ using wide = unsigned __int128;

// What the header says, by sorting; for rows whose greatest logit is finite.
std::vector<std::uint64_t> kept_weights(const std::vector<float>& logits, const draw& d) {
  float top = -infinity;
  for (const float logit : logits) top = logit > top ? logit : top;
  std::vector<std::uint64_t> weights;
  for (const float logit : logits) {
    const float e = math::exp((logit - top) * (1.0f / d.temperature));
    weights.push_back(e > 0 ? static_cast<std::uint64_t>(std::min(double{e}, 1 - 0x1p-24) * 0x1p32)
                            : 0);
  }
  if (!(d.top_p < 1)) return weights;
  const auto total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  const auto part = static_cast<std::uint64_t>(double{std::max(d.top_p, 0.0f)} * 0x1p32);
  const auto need = std::max<wide>(1, (wide{total} * part + 0xffffffffu) >> 32);
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return weights[a] > weights[b]; });
  std::vector<std::uint64_t> kept(weights.size());
  std::uint64_t sum = 0;
  for (const std::size_t i : order) {
    if (sum >= need) break;
    sum += kept[i] = weights[i];
  }
  return kept;
}

std::int32_t reference(const std::vector<float>& logits, const draw& d) {
  const auto kept = kept_weights(logits, d);
  const auto total = std::accumulate(kept.begin(), kept.end(), std::uint64_t{0});
  const ops::philox_words words = ops::philox(d.seed, d.counter, 0);
  const wide word = words.at[0] | static_cast<wide>(words.at[1]) << 32;
  const auto target = static_cast<std::uint64_t>(word * total >> 64);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    sum += kept[i];
    if (sum > target) return static_cast<std::int32_t>(i);
  }
  return -1;
}

const std::vector<float> temperatures = {0.05f, 0.7f, 1.0f, 3.0f, 1e6f};
const std::vector<float> top_ps = {-1.0f, 0.0f, 1e-9f, 0.1f, 0.5f, 0.9f, 0.99999f, 1.0f, 2.0f};

std::vector<draw> table_of_draws() {
  std::vector<draw> draws;
  for (const float temperature : temperatures) {
    for (const float top_p : top_ps) draws.push_back({temperature, top_p, 77, draws.size()});
  }
  return draws;
}

// One row for each draw; every third row has few different logits, so that weights tie.
std::vector<float> table_of_logits(std::size_t width, std::size_t rows) {
  auto logits = random_values<float>(rows * width, width, 8.0f);
  for (std::size_t row = 0; row < rows; row += 3) {
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) logits[i] = std::round(logits[i]);
  }
  return logits;
}

class sample_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, sample_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sample_op, draws_what_sorting_would_draw) {
  const auto draws = table_of_draws();
  for (const std::size_t width : {1, 2, 31, 32, 33, 1000, 4097, 32000}) {
    const auto logits = table_of_logits(width, draws.size());
    const auto got = sampled(bench(), logits, draws);
    for (std::size_t row = 0; row < draws.size(); ++row) {
      EXPECT_EQ(got[row], reference(row_of(logits, row, width), draws[row]))
          << "width " << width << ", temperature " << draws[row].temperature << ", top_p "
          << draws[row].top_p;
    }
    expect_same_bits(sampled(bench(), logits, draws, place::shifted), got);
  }
}

TEST_P(sample_op, draws_from_a_whole_vocabulary) {
  const std::size_t width = 151936;
  const std::vector<draw> draws = {{1.0f, 0.9f, 3, 4}, {0.8f, 1.0f, 3, 5}, {2.0f, 0.999f, 3, 6}};
  const auto logits = random_values<float>(draws.size() * width, 9, 12.0f);
  const auto got = sampled(bench(), logits, draws);
  for (std::size_t row = 0; row < draws.size(); ++row) {
    EXPECT_EQ(got[row], reference(row_of(logits, row, width), draws[row])) << "row " << row;
  }
}

TEST_P(sample_op, equal_weights_at_the_widest_row_sum_exactly) {
  const auto width = static_cast<std::size_t>(max_sample_width);
  const std::vector<float> logits(width, 2.5f);
  for (std::uint64_t counter = 0; counter < 4; ++counter) {
    const draw half{1.0f, 0.5f, 5, counter};
    const auto got = sampled(bench(), logits, {half});
    EXPECT_EQ(got[0], reference(logits, half));
    EXPECT_LT(got[0], max_sample_width / 2);
  }
}

TEST_P(sample_op, each_row_has_the_token_it_has_alone) {
  const std::size_t width = 700;
  const auto logits = random_values<float>(64 * width, 11, 5.0f);
  std::vector<draw> draws;
  for (std::uint64_t row = 0; row < 64; ++row) {
    draws.push_back({row % 4 == 0 ? 0.0f : 0.5f + 0.01f * static_cast<float>(row),
                     row % 3 == 0 ? 1.0f : 0.8f, row, row * row});
  }
  std::vector<std::int32_t> alone;
  for (std::size_t row = 0; row < 64; ++row) {
    append(alone, sampled(bench(), row_of(logits, row, width), {draws[row]}));
  }
  for (std::size_t m = 1; m <= 64; ++m) {
    expect_same_bits(sampled(bench(), rows_from(logits, 64 - m, width),
                             {draws.end() - static_cast<std::ptrdiff_t>(m), draws.end()}),
                     rows_from(alone, 64 - m, 1));
  }
}

TEST_P(sample_op, without_a_usable_temperature_it_is_the_argmax) {
  const std::vector<float> logits = {1.0f, 3.0f, 3.0f, 2.0f};
  for (const float temperature : {0.0f, -0.0f, -1.0f, -infinity, nan, 1e-45f}) {
    EXPECT_EQ(sampled(bench(), logits, {{temperature}})[0], 1) << temperature;
  }
}

TEST_P(sample_op, without_a_finite_logit_it_is_the_argmax) {
  EXPECT_EQ(sampled(bench(), {1.0f, nan, infinity, 2.0f}, {{}})[0], 2);
  EXPECT_EQ(sampled(bench(), {nan, -infinity, -infinity}, {{}})[0], 1);
  EXPECT_EQ(sampled(bench(), {nan, nan}, {{}})[0], 0);
}

TEST_P(sample_op, what_is_masked_is_never_drawn) {
  std::vector<float> logits(100, -infinity);
  logits[17] = -4.0f;
  logits[40] = nan;
  logits[80] = -4.0f;
  std::map<std::int32_t, int> seen;
  for (std::uint64_t counter = 0; counter < 64; ++counter) {
    ++seen[sampled(bench(), logits, {{infinity, 1.0f, 2, counter}})[0]];
    ++seen[sampled(bench(), logits, {{1.0f, 0.99f, 2, counter}})[0]];
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_GT(seen[17], 30);
  EXPECT_GT(seen[80], 30);
}

TEST_P(sample_op, a_nucleus_without_mass_keeps_the_heaviest_token) {
  const auto logits = random_values<float>(5000, 12, 1.0f);
  const auto greatest = std::ranges::max_element(logits) - logits.begin();
  for (const float top_p : {0.0f, -0.5f, 1e-12f, -infinity}) {
    for (std::uint64_t counter = 0; counter < 8; ++counter) {
      EXPECT_EQ(sampled(bench(), logits, {{1.0f, top_p, 3, counter}})[0], greatest);
    }
  }
}

TEST_P(sample_op, frequencies_follow_the_weights) {
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 2.0f, 0.5f, -3.0f};
  const std::size_t count = 20000;
  std::vector<float> all;
  std::vector<draw> draws;
  for (std::uint64_t counter = 0; counter < count; ++counter) {
    append(all, logits);
    draws.push_back({0.8f, 0.9f, 42, counter});
  }
  std::vector<double> seen(logits.size());
  for (const std::int32_t token : sampled(bench(), all, draws)) {
    ++seen[static_cast<std::size_t>(token)];
  }
  const auto kept = kept_weights(logits, draws[0]);
  const auto total = std::accumulate(kept.begin(), kept.end(), 0.0);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double share = static_cast<double>(kept[i]) / total;
    EXPECT_NEAR(seen[i] / count, share, 5 * std::sqrt(share * (1 - share) / count)) << i;
  }
}

TEST_P(sample_op, a_draw_repeats_and_another_counter_or_seed_draws_anew) {
  const std::vector<float> logits(1 << 16, 0.0f);
  const auto token = [&](std::uint64_t seed, std::uint64_t counter) {
    return sampled(bench(), logits, {{1.0f, 1.0f, seed, counter}})[0];
  };
  EXPECT_EQ(token(1, 1), token(1, 1));
  EXPECT_NE(token(1, 1), token(1, 2));
  EXPECT_NE(token(1, 1), token(2, 1));
  EXPECT_NE(token(1, 1), token(1, std::uint64_t{1} << 32 | 1));
}

TEST_P(sample_op, refuses_sizes_that_do_not_fit) {
  EXPECT_EQ(sampled(bench(), {}, {}).size(), 0u);
  const auto logits = bench().put(std::vector<float>(12));
  const auto floats = bench().put(std::vector<float>(3, 1.0f));
  const auto words = bench().put(std::vector<std::uint64_t>(3));
  const auto out = bench().room<std::int32_t>(3);
  const auto run = [&](std::size_t size, std::size_t of_floats, std::size_t of_words,
                       std::int64_t width) {
    launch(bench().on(), sample, read<float>{logits.span().subview(0, size)},
           read<float>{floats.span()}, read<float>{floats.span().subview(0, of_floats)},
           read<std::uint64_t>{words.span()},
           read<std::uint64_t>{words.span().subview(0, of_words)}, write<std::int32_t>{out.span()},
           width);
  };
  EXPECT_NO_THROW(run(12, 3, 3, 4));
  EXPECT_THROW(run(11, 3, 3, 4), usage_error);
  EXPECT_THROW(run(12, 2, 3, 4), usage_error);
  EXPECT_THROW(run(12, 3, 2, 4), usage_error);
  EXPECT_THROW(run(12, 3, 3, 0), usage_error);
  EXPECT_THROW(run(0, 3, 3, max_sample_width + 1), usage_error);
}

TEST(sample, cuda_draws_the_tokens_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  const auto draws = table_of_draws();
  for (const std::size_t width : {33, 5000, 151936}) {
    const auto logits = table_of_logits(width, draws.size());
    expect_same_bits(sampled(cuda, logits, draws), sampled(cpu, logits, draws));
  }
}

}  // namespace
}  // namespace reprise::test
