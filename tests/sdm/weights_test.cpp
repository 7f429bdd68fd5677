#include "reprise/sdm/weights.hpp"

#include "tests/sdm/chunk_calls.hpp"

namespace reprise::test {
namespace {

// How far an exponential of a sum may be off, relative: its argument is rounded, then itself.
template <class X>
double rounding_at(double sum) {
  return (std::is_same_v<X, float> ? 0x1p-23 : 0x1p-51) * (std::abs(sum) + 4.0);
}

template <class X>
void expect_exponential(X got, double weight, double sum) {
  const double want = weight * std::exp(sum);
  ASSERT_NEAR(static_cast<double>(got), want, rounding_at<X>(sum) * std::abs(want) + 2e-38);
}

template <class X>
void expect_weights(const chunk_weights<X>& got, const sdm_case& of) {
  const auto events = static_cast<std::size_t>(of.sizes.events());
  std::size_t at = 0;  // the chunk's first event
  each_chunk(of.sizes, [&](std::int64_t p, std::int64_t n) {
    const auto known = plain_events(of, p, n);
    // The level at the end of a row's run is that of the last event on it.
    const auto end_of = [&](std::int64_t row) {
      double last = 0;
      for (const plain_event& one : known) last = one.row == row ? one.level : last;
      return last;
    };
    std::vector<std::int64_t> rows;
    for (std::size_t e = 0; e < events; ++e) {
      const plain_event& one = known[e];
      if (one.row < 0) {
        ASSERT_EQ(got.level[at + e], 0.0);
        ASSERT_EQ(got.head[at + e], X{0});
        ASSERT_EQ(got.tail[at + e], X{0});
        continue;
      }
      rows.push_back(one.row);
      ASSERT_EQ(got.level[at + e], one.level) << e;
      expect_exponential(got.head[at + e], one.weight, one.level);
      expect_exponential(got.tail[at + e], one.is_write ? one.weight : 0.0,
                         end_of(one.row) - one.level);
    }
    std::ranges::sort(rows);
    rows.erase(std::ranges::unique(rows).begin(), rows.end());
    for (std::size_t run = 0; run < events; ++run) {
      if (run < rows.size()) {
        expect_exponential(got.keep[at + run], 1.0, end_of(rows[run]));
      } else {
        ASSERT_EQ(got.keep[at + run], X{0});
      }
    }
    at += events;
  });
}

template <class X>
void expect_same(const chunk_weights<X>& got, const chunk_weights<X>& want) {
  expect_same_bits(got.level, want.level);
  expect_same_bits(got.head, want.head);
  expect_same_bits(got.tail, want.tail);
  expect_same_bits(got.keep, want.keep);
}

class sdm_weights_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, sdm_weights_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sdm_weights_op, are_what_plain_loops_give) {
  for (const sdm_case& one : small_cases()) {
    SCOPED_TRACE(one.name);
    const chunk_orders by = plain_order(one);
    expect_weights(weights_on<float>(bench(), one, by), one);
    expect_weights(weights_on<float>(bench(), one, by, place::shifted), one);
    expect_weights(weights_on<double>(bench(), one, by), one);
  }
}

TEST_P(sdm_weights_op, of_a_slot_that_is_only_read_keep_its_row) {
  sdm_case one = random_case("read alone", {1, 3, 1, 1, 1, 1, 1, 1}, {});
  one.k_idx = {1};
  one.q_idx = {2};
  one.g = {-1000.0};
  one.q_val = {0.75};
  const auto got = weights_on<float>(bench(), one, plain_order(one));
  EXPECT_EQ(got.keep, (std::vector<float>{0.0F, 1.0F}));
  EXPECT_EQ(got.head[1], 0.75F);
  EXPECT_EQ(got.tail[1], 0.0F);
  EXPECT_EQ(got.tail[0], static_cast<float>(one.k_val[0]));
}

// What comes behind a decay that forgets all weighs as if it had not been.
TEST_P(sdm_weights_op, lose_no_digits_to_a_strong_decay) {
  constexpr std::int64_t tokens = 12;
  sdm_case one = random_case("strong", {1, 1, 1, tokens, 1, 1, 1, tokens}, {});
  one.g.assign(tokens, -0.1F);
  one.g[0] = -5000.0;
  const auto got = weights_on<float>(bench(), one, plain_order(one));
  for (std::size_t t = 0; t < tokens; ++t) {
    const double left = static_cast<double>(-0.1F) * static_cast<double>(tokens - 1 - t);
    expect_exponential(got.tail[2 * t], one.k_val[t], left);
  }
  EXPECT_EQ(got.keep[0], 0.0F);
}

TEST_P(sdm_weights_op, of_no_tokens_are_none) {
  const sdm_case none = random_case("none", {2, 4, 1, 0, 2, 2, 1, 8}, {});
  EXPECT_TRUE(weights_on<float>(bench(), none, plain_order(none)).keep.empty());
}

TEST_P(sdm_weights_op, refuse_sizes_that_do_not_fit) {
  const sdm_case good = random_case("good", {1, 4, 1, 4, 2, 3, 2, 4}, {});
  const chunk_orders by = plain_order(good);
  EXPECT_NO_THROW(weights_on<float>(bench(), good, by));
  const auto refuses = [&](const sdm_case& of, const chunk_orders& from) {
    EXPECT_THROW(weights_on<float>(bench(), of, from), usage_error);
    EXPECT_THROW(weights_on<double>(bench(), of, from), usage_error);
  };
  for (auto array : {&sdm_case::k_val, &sdm_case::g, &sdm_case::q_val}) {
    sdm_case bad = good;
    (bad.*array).pop_back();
    refuses(bad, by);
  }
  for (auto array : {&chunk_orders::order, &chunk_orders::runs}) {
    chunk_orders bad = by;
    (bad.*array).pop_back();
    refuses(good, bad);
  }
}

TEST(sdm_weights, have_the_same_bits_on_any_number_of_threads) {
  op_bench alone{"cpu", 1};
  op_bench eight{"cpu", 8};
  const sdm_case one = random_case("many chunks", {3, 50, 1, 400, 8, 8, 8, 32}, {.seed = 31});
  const chunk_orders by = plain_order(one);
  expect_same(weights_on<float>(eight, one, by), weights_on<float>(alone, one, by));
  expect_same(weights_on<double>(eight, one, by), weights_on<double>(alone, one, by));
}

TEST(sdm_weights, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& cases : {small_cases(), large_cases()}) {
    for (const sdm_case& one : cases) {
      SCOPED_TRACE(one.name);
      const chunk_orders by = plain_order(one);
      expect_same(weights_on<float>(cuda, one, by), weights_on<float>(cpu, one, by));
    }
  }
}

}  // namespace
}  // namespace reprise::test
