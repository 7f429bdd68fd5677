#include "reprise/sdm/pairs.hpp"

#include "reprise/ops/math.hpp"
#include "tests/sdm/chunk_calls.hpp"

namespace reprise::test {
namespace {

constexpr auto both_sides = {sdm_inverse::scaled_columns, sdm_inverse::scaled_rows};

// Tokens that name a slot twice have no result that is specified.
std::vector<sdm_case> cases_as_agreed() {
  std::vector<sdm_case> cases = small_cases();
  std::erase_if(cases, [](const sdm_case& one) {
    return one.name == "indices named twice" || one.name == "both";
  });
  return cases;
}

// f(at, later, earlier) for each event of a chunk with each write before it that is on its slot and
// counts in a matrix, in the order of the later and then of the earlier; `at` is their element.
template <class F>
void each_term(const sdm_case& of, bool of_readings, F&& f) {
  const auto side = static_cast<std::size_t>(of.sizes.chunk);
  std::size_t chunk = 0;
  each_chunk(of.sizes, [&](std::int64_t p, std::int64_t n) {
    const auto known = plain_events(of, p, n);
    for (const plain_event& later : known) {
      if (later.row < 0 || later.is_write == of_readings) continue;
      for (const plain_event& earlier : known) {
        if (!earlier.is_write || earlier.row != later.row || earlier.token > later.token) continue;
        if (!of_readings && earlier.token == later.token) continue;
        const auto t = static_cast<std::size_t>(later.token);
        const auto s = static_cast<std::size_t>(earlier.token);
        f((chunk * side + t) * side + s, later, earlier);
      }
    }
    ++chunk;
  });
}

template <class X>
void expect_matrix(const std::vector<X>& got, const sdm_case& of, bool of_readings) {
  std::vector<double> want(got.size(), 0.0);
  std::vector<double> most(got.size(), 0.0);  // that rounding may add up to
  constexpr double step = std::is_same_v<X, float> ? 0x1p-23 : 0x1p-51;
  each_term(of, of_readings,
            [&](std::size_t at, const plain_event& later, const plain_event& earlier) {
              const double by = later.level - earlier.level;
              const double term = later.weight * earlier.weight * std::exp(by);
              want[at] += term;
              most[at] += std::abs(term) * step * (std::abs(by) + 16.0) + 2e-38;
            });
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], most[i]) << i;
  }
}

template <class X>
void expect_same(const chunk_pairs<X>& got, const chunk_pairs<X>& want) {
  expect_same_bits(got.recalls, want.recalls);
  expect_same_bits(got.readings, want.readings);
}

class sdm_pairs_op : public op_on_device {
 protected:
  template <class X>
  chunk_pairs<X> pairs_of(const sdm_case& one, place where = place::aligned) {
    return pairs_on<X>(bench(), one, plain_order(one), plain_levels(one), where);
  }
};
INSTANTIATE_TEST_SUITE_P(devices, sdm_pairs_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sdm_pairs_op, are_sums_over_pairs_of_events_on_one_slot) {
  for (const sdm_case& one : cases_as_agreed()) {
    SCOPED_TRACE(one.name);
    const auto narrow = pairs_of<float>(one);
    expect_matrix(narrow.recalls, one, false);
    expect_matrix(narrow.readings, one, true);
    expect_same(pairs_of<float>(one, place::shifted), narrow);
    const auto wide = pairs_of<double>(one);
    expect_matrix(wide.recalls, one, false);
    expect_matrix(wide.readings, one, true);
  }
}

TEST_P(sdm_pairs_op, add_their_terms_in_the_order_that_is_documented) {
  for (const sdm_case& one : cases_as_agreed()) {
    SCOPED_TRACE(one.name);
    const auto got = pairs_of<float>(one);
    for (const bool of_readings : {false, true}) {
      std::vector<float> want(got.recalls.size(), 0.0F);
      each_term(one, of_readings,
                [&](std::size_t at, const plain_event& later, const plain_event& earlier) {
                  const float both =
                      static_cast<float>(later.weight) * static_cast<float>(earlier.weight);
                  const auto by = static_cast<float>(later.level - earlier.level);
                  const float term = both * math::exp(by);
                  want[at] = want[at] + term;
                });
      expect_same_bits(of_readings ? got.readings : got.recalls, want);
    }
  }
}

TEST_P(sdm_pairs_op, lose_no_digits_to_a_strong_decay) {
  constexpr std::int64_t tokens = 12;
  sdm_case one = random_case("strong", {1, 1, 1, tokens, 1, 1, 1, tokens}, {});
  one.g.assign(tokens, -0.1F);
  one.g[0] = -5000.0;
  const auto got = pairs_of<float>(one);
  expect_matrix(got.recalls, one, false);
  expect_matrix(got.readings, one, true);
  EXPECT_NE(got.recalls[3 * tokens + 1], 0.0F);
}

// A slot that a token names twice is its caller's mistake, and each time the same.
TEST_P(sdm_pairs_op, of_indices_named_twice_are_each_time_the_same) {
  for (const sdm_case& one : small_cases()) {
    SCOPED_TRACE(one.name);
    const auto first = pairs_of<float>(one);
    for (int i = 0; i < 3; ++i) expect_same(pairs_of<float>(one), first);
  }
}

template <class X>
std::vector<X> random_recalls(const sdm_sizes& sizes, std::uint64_t seed) {
  const auto side = static_cast<std::size_t>(sizes.chunk);
  const auto values = random_values<float>(chunk_elements(sizes, sizes.chunk * sizes.chunk), seed,
                                           2.0F / static_cast<float>(std::sqrt(sizes.chunk)));
  std::vector<X> recalls(values.size(), X{0});
  std::size_t chunk = 0;
  each_chunk(sizes, [&](std::int64_t, std::int64_t n) {
    for (std::size_t t = 0; t < static_cast<std::size_t>(sizes.tokens_in(n)); ++t) {
      for (std::size_t s = 0; s < t; ++s) {
        const std::size_t at = (chunk * side + t) * side + s;
        recalls[at] = static_cast<X>(values[at]);
      }
    }
    ++chunk;
  });
  return recalls;
}

// I + M of a chunk, in X: M's elements are one product each.
template <class X>
std::vector<X> unit_and_scaled(const sdm_sizes& sizes, const std::vector<X>& recalls,
                               const std::vector<X>& beta, sdm_inverse which, std::int64_t p,
                               std::int64_t n) {
  const std::int64_t side = sizes.chunk;
  std::vector<X> m(static_cast<std::size_t>(side * side), X{0});
  for (std::int64_t t = 0; t < side; ++t) {
    for (std::int64_t s = 0; s < t && t < sizes.tokens_in(n); ++s) {
      const std::int64_t scale = which == sdm_inverse::scaled_columns ? s : t;
      m[static_cast<std::size_t>(t * side + s)] =
          recalls[static_cast<std::size_t>((sizes.chunk_of(p, n) * side + t) * side + s)] *
          beta[static_cast<std::size_t>(p * sizes.tokens + n * side + scale)];
    }
    m[static_cast<std::size_t>(t * side + t)] = X{1};
  }
  return m;
}

template <class X>
void expect_inverse(const std::vector<X>& got, const sdm_sizes& sizes,
                    const std::vector<X>& recalls, const std::vector<X>& beta, sdm_inverse which) {
  const auto side = static_cast<std::size_t>(sizes.chunk);
  constexpr double step = std::is_same_v<X, float> ? 0x1p-23 : 0x1p-51;
  each_chunk(sizes, [&](std::int64_t p, std::int64_t n) {
    const auto m = unit_and_scaled(sizes, recalls, beta, which, p, n);
    const X* const inverse =
        got.data() + static_cast<std::size_t>(sizes.chunk_of(p, n)) * side * side;
    for (std::size_t t = 0; t < side; ++t) {
      for (std::size_t j = 0; j < side; ++j) {
        double sum = 0;
        double most = 0;
        for (std::size_t s = 0; s < side; ++s) {
          const double term =
              static_cast<double>(m[t * side + s]) * static_cast<double>(inverse[s * side + j]);
          sum += term;
          most += std::abs(term);
        }
        ASSERT_NEAR(sum, t == j ? 1.0 : 0.0, most * step * static_cast<double>(side))
            << t << ", " << j;
        if (j >= t) {
          ASSERT_EQ(inverse[t * side + j], j == t ? X{1} : X{0});
        }
      }
    }
  });
}

// Chunks of one, of part of a tile of rows, of over a block of columns; with a short last one, and
// with one that no token fills.
std::vector<sdm_sizes> sizes_to_invert() {
  return {{2, 9, 1, 7, 1, 1, 1, 1},   {1, 9, 1, 5, 1, 1, 1, 5},   {3, 9, 1, 21, 1, 1, 1, 8},
          {2, 9, 1, 64, 1, 1, 1, 32}, {1, 9, 1, 70, 1, 1, 1, 67}, {2, 9, 1, 100, 1, 1, 1, 130}};
}

template <class X>
void expect_inverses(op_bench& bench) {
  for (const sdm_sizes& sizes : sizes_to_invert()) {
    SCOPED_TRACE(sizes.chunk);
    const auto recalls = random_recalls<X>(sizes, 5);
    const auto beta = as<X>(random_case("beta", sizes, {}).beta);
    for (const auto which : both_sides) {
      const auto got = inverse_on(bench, sizes, recalls, beta, which);
      expect_inverse(got, sizes, recalls, beta, which);
      expect_same_bits(inverse_on(bench, sizes, recalls, beta, which, place::shifted), got);
    }
  }
}

class sdm_invert_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, sdm_invert_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sdm_invert_op, times_the_matrix_is_the_identity_to_rounding) {
  expect_inverses<float>(bench());
  expect_inverses<double>(bench());
}

TEST_P(sdm_invert_op, substitutes_in_the_order_that_is_documented) {
  for (const sdm_sizes& sizes : sizes_to_invert()) {
    SCOPED_TRACE(sizes.chunk);
    const auto recalls = random_recalls<float>(sizes, 6);
    const auto beta = as<float>(random_case("beta", sizes, {.seed = 2}).beta);
    for (const auto which : both_sides) {
      std::vector<float> want;
      each_chunk(sizes, [&](std::int64_t p, std::int64_t n) {
        const auto m = unit_and_scaled(sizes, recalls, beta, which, p, n);
        const auto side = static_cast<std::size_t>(sizes.chunk);
        std::vector<float> inverse(side * side, 0.0F);
        for (std::size_t j = 0; j < side; ++j) {
          inverse[j * side + j] = 1.0F;
          for (std::size_t t = j + 1; t < static_cast<std::size_t>(sizes.tokens_in(n)); ++t) {
            float sum = 0.0F;
            for (std::size_t s = j; s < t; ++s) {
              const float term = m[t * side + s] * inverse[s * side + j];
              sum = sum + term;
            }
            inverse[t * side + j] = -sum;
          }
        }
        append(want, inverse);
      });
      expect_same_bits(inverse_on(bench(), sizes, recalls, beta, which), want);
    }
  }
}

TEST_P(sdm_invert_op, lets_no_column_feel_what_is_not_in_it) {
  const sdm_sizes sizes{1, 9, 1, 6, 1, 1, 1, 6};
  auto recalls = random_recalls<float>(sizes, 7);
  recalls[4 * 6 + 1] = INFINITY;  // of token 4 and token 1: columns behind 1 do not see it
  const std::vector<float> beta(6, 0.5F);
  const auto got = inverse_on(bench(), sizes, recalls, beta, sdm_inverse::scaled_columns);
  for (std::size_t j = 2; j < 6; ++j) {
    for (std::size_t t = 0; t < 6; ++t)
      EXPECT_TRUE(std::isfinite(got[t * 6 + j])) << t << ", " << j;
  }
  EXPECT_FALSE(std::isfinite(got[4 * 6 + 1]));
}

TEST_P(sdm_pairs_op, of_no_tokens_are_none) {
  const sdm_case none = random_case("none", {2, 4, 1, 0, 2, 2, 1, 8}, {});
  EXPECT_TRUE(pairs_of<float>(none).recalls.empty());
  EXPECT_TRUE(inverse_on<float>(bench(), none.sizes, {}, {}, sdm_inverse::scaled_rows).empty());
}

TEST_P(sdm_pairs_op, refuse_sizes_that_do_not_fit) {
  const sdm_case good = random_case("good", {1, 4, 1, 4, 2, 3, 2, 4}, {});
  const chunk_orders by = plain_order(good);
  const std::vector<double> level = plain_levels(good);
  const auto refuses = [&](const sdm_case& of, const chunk_orders& from,
                           const std::vector<double>& levels) {
    EXPECT_THROW(pairs_on<float>(bench(), of, from, levels), usage_error);
    EXPECT_THROW(pairs_on<double>(bench(), of, from, levels), usage_error);
  };
  for (auto array : {&sdm_case::k_val, &sdm_case::q_val}) {
    sdm_case bad = good;
    (bad.*array).pop_back();
    refuses(bad, by, level);
  }
  for (auto array :
       {&chunk_orders::order, &chunk_orders::place, &chunk_orders::run_of, &chunk_orders::runs}) {
    chunk_orders bad = by;
    (bad.*array).pop_back();
    refuses(good, bad, level);
  }
  refuses(good, by, {1.0});
  const auto inverts = [&](std::size_t recalls, std::size_t beta) {
    return inverse_on<float>(bench(), good.sizes, std::vector<float>(recalls),
                             std::vector<float>(beta), sdm_inverse::scaled_rows);
  };
  EXPECT_NO_THROW(inverts(16, 4));
  EXPECT_THROW(inverts(15, 4), usage_error);
  EXPECT_THROW(inverts(16, 3), usage_error);
}

template <class X>
void expect_threads_to_change_nothing(op_bench& alone, op_bench& eight) {
  const sdm_case one = random_case("many chunks", {3, 50, 1, 400, 8, 8, 8, 32}, {.seed = 31});
  const chunk_orders by = plain_order(one);
  const auto pairs = pairs_on<X>(alone, one, by, plain_levels(one));
  expect_same(pairs_on<X>(eight, one, by, plain_levels(one)), pairs);
  for (const auto which : both_sides) {
    expect_same_bits(inverse_on(eight, one.sizes, pairs.recalls, as<X>(one.beta), which),
                     inverse_on(alone, one.sizes, pairs.recalls, as<X>(one.beta), which));
  }
}

TEST(sdm_pairs, have_the_same_bits_on_any_number_of_threads) {
  op_bench alone{"cpu", 1};
  op_bench eight{"cpu", 8};
  expect_threads_to_change_nothing<float>(alone, eight);
  expect_threads_to_change_nothing<double>(alone, eight);
}

TEST(sdm_pairs, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& cases : {small_cases(), large_cases()}) {
    for (const sdm_case& one : cases) {
      SCOPED_TRACE(one.name);
      const chunk_orders by = plain_order(one);
      const std::vector<double> level = plain_levels(one);
      expect_same(pairs_on<float>(cuda, one, by, level), pairs_on<float>(cpu, one, by, level));
    }
  }
}

// The columns lie in shared memory, in more of it than a block gets unasked, and where they are.
TEST(sdm_invert, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  std::vector<sdm_sizes> all = sizes_to_invert();
  all.push_back({7, 9, 1, 3000, 1, 1, 1, 64});
  for (const std::int64_t chunk : {128, 170, 171, 256, 341, 342, 500}) {
    all.push_back({2, 9, 1, 2 * chunk - 3, 1, 1, 1, chunk});
  }
  for (const sdm_sizes& sizes : all) {
    SCOPED_TRACE(sizes.chunk);
    const auto recalls = random_recalls<float>(sizes, 8);
    const auto beta = as<float>(random_case("beta", sizes, {}).beta);
    for (const auto which : both_sides) {
      expect_same_bits(inverse_on(cuda, sizes, recalls, beta, which),
                       inverse_on(cpu, sizes, recalls, beta, which));
    }
  }
}

}  // namespace
}  // namespace reprise::test
