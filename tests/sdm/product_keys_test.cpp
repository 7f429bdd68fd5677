// Product keys against a plain search over all pairs of kept keys: which slots, in which order,
// with which weights.
#include "tests/sdm/product_keys.hpp"

#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using doubles = std::vector<double>;

float seen(float score) {
  return std::isnan(score) ? -inf : score;
}

// The keys of a half from the best on.
std::vector<std::size_t> ranked(const floats& scores) {
  std::vector<std::size_t> keys(scores.size());
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::ranges::stable_sort(
      keys, [&](std::size_t a, std::size_t b) { return seen(scores[a]) > seen(scores[b]); });
  return keys;
}

struct plain_choice {
  indices slots;
  doubles val;
};

plain_choice searched(const floats& first, const floats& second, std::size_t k) {
  struct pair {
    float sum;
    std::size_t i, j;  // ranks
  };
  const auto firsts = ranked(first);
  const auto seconds = ranked(second);
  const std::size_t kept = std::min(k, first.size());
  std::vector<pair> pairs;
  for (std::size_t i = 0; i < kept; ++i) {
    for (std::size_t j = 0; j < kept; ++j) {
      pairs.push_back({first[firsts[i]] + second[seconds[j]], i, j});
    }
  }
  std::ranges::sort(pairs, [](const pair& a, const pair& b) {
    if (seen(a.sum) != seen(b.sum)) return seen(a.sum) > seen(b.sum);
    if (a.i + a.j != b.i + b.j) return a.i + a.j > b.i + b.j;
    return a.i > b.i;
  });
  plain_choice found;
  for (std::size_t l = 0; l < k; ++l) {
    found.slots.push_back(
        static_cast<std::int32_t>(firsts[pairs[l].i] * first.size() + seconds[pairs[l].j]));
  }
  std::ranges::sort(found.slots);
  double top = -std::numeric_limits<double>::infinity();
  for (const std::int32_t slot : found.slots) {
    const auto at = static_cast<std::size_t>(slot);
    const float score = first[at / first.size()] + second[at % first.size()];
    found.val.push_back(static_cast<double>(score));
    top = std::max(top, found.val.back());
  }
  double sum = 0;
  for (double& one : found.val) sum += one = std::exp(one - top);
  for (double& one : found.val) one /= sum;
  return found;
}

void expect_searched(const choice& got, const keys_case& at) {
  const std::size_t slots = at.n * at.n;
  for (std::size_t row = 0; row < at.rows(); ++row) {
    const plain_choice want =
        searched(row_of(at.first, row, at.n), row_of(at.second, row, at.n), at.k);
    indices idx;
    for (const std::int32_t slot : want.slots) {
      idx.push_back(slot + static_cast<std::int32_t>(row / at.tokens * slots));
    }
    ASSERT_EQ(row_of(got.idx, row, at.k), idx) << "row " << row;
    expect_near(row_of(got.val, row, at.k), want.val, 1e-7);
  }
}

class product_keys_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, product_keys_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(product_keys_op, choose_what_a_search_over_all_pairs_finds) {
  struct shape {
    std::size_t n, k, rows;
  };
  for (const auto& [n, k, rows] : std::vector<shape>{{1, 1, 3},
                                                     {2, 3, 9},
                                                     {3, 9, 5},
                                                     {8, 1, 7},
                                                     {8, 64, 6},
                                                     {12, 128, 6},
                                                     {33, 32, 20},
                                                     {64, 64, 17},
                                                     {65, 33, 9},
                                                     {192, 64, 40},
                                                     {256, 128, 5},
                                                     {257, 31, 5},
                                                     {1024, 128, 5}}) {
    SCOPED_TRACE(testing::Message() << k << " of " << n << " x " << n);
    const keys_case at = random_case(n, k, rows, n);
    expect_searched(chosen(bench(), at), at);
    expect_searched(chosen(bench(), at, place::shifted), at);
  }
}

// All equal: ranks are indices, and of ranks below three the largest sums are of (2, 2), then of
// (2, 1) and (1, 2).
TEST_P(product_keys_op, of_equal_scores_take_the_largest_ranks) {
  const choice got = chosen(bench(), {4, 3, 1, floats(4, 0.5F), floats(4, -2.0F)});
  EXPECT_EQ(got.idx, (indices{1 * 4 + 2, 2 * 4 + 1, 2 * 4 + 2}));
  expect_near(got.val, doubles(3, 1.0 / 3), 0);
  const choice two = chosen(bench(), {4, 2, 1, floats(4, 0.5F), floats(4, -2.0F)});
  EXPECT_EQ(two.idx, (indices{1 * 4 + 0, 1 * 4 + 1})) << "of one sum of ranks, the first's greater";
}

// Slots (0, 1), (0, 2) and (1, 0) tie at 4, behind (0, 0) at 5.
TEST_P(product_keys_op, of_scores_that_tie_take_those_of_larger_ranks) {
  const floats first{3.0F, 2.0F, 0.0F};
  const floats second{2.0F, 1.0F, 1.0F};
  EXPECT_EQ(chosen(bench(), {3, 2, 1, first, second}).idx, (indices{0, 3}));
  EXPECT_EQ(chosen(bench(), {3, 3, 1, first, second}).idx, (indices{0, 2, 3}));
}

TEST_P(product_keys_op, choose_among_many_equal_scores_as_a_search_does) {
  const floats few{0.0F, -0.0F, 1.0F, -1.0F};
  for (const std::size_t n : {2U, 7U, 33U, 192U, 300U}) {
    for (const std::size_t k : {1U, 4U, 31U, 64U, 128U}) {
      if (k > n * n) continue;
      SCOPED_TRACE(testing::Message() << k << " of " << n << " x " << n);
      for (const floats& values : {few, floats{2.0F}, floats{0.0F, 1e30F, -1e30F}}) {
        const keys_case at = case_of_few(values, n, k, 12, n + k);
        const choice got = chosen(bench(), at);
        expect_searched(got, at);
      }
    }
  }
}

TEST_P(product_keys_op, take_zeros_of_both_signs_for_equal) {
  const floats zeros{-0.0F, 0.0F, -0.0F};
  EXPECT_EQ(chosen(bench(), {3, 1, 1, zeros, zeros}).idx, indices{0});
  EXPECT_EQ(chosen(bench(), {3, 2, 1, zeros, zeros}).idx, (indices{3, 4}));
}

TEST_P(product_keys_op, take_a_nan_for_the_lowest_score) {
  const keys_case at{4, 4, 1, {nan, 1.0F, nan, -3.0F}, {-9.0F, nan, -1e30F, 2.0F}};
  const choice got = chosen(bench(), at);
  EXPECT_EQ(got.idx, (indices{1 * 4 + 0, 1 * 4 + 3, 3 * 4 + 0, 3 * 4 + 3}));
  for (const float one : got.val) EXPECT_FALSE(std::isnan(one));
}

TEST_P(product_keys_op, show_a_nan_that_has_to_be_chosen_in_all_of_its_row) {
  const keys_case at{2, 3, 1, {nan, 1.0F, 1.0F, 2.0F}, {0.0F, 1.0F, 1.0F, 0.0F}};
  const choice got = chosen(bench(), at);
  for (std::size_t l = 0; l < 3; ++l) {
    EXPECT_TRUE(std::isnan(got.val[l])) << l;
    EXPECT_FALSE(std::isnan(got.val[3 + l])) << l;
  }
}

TEST_P(product_keys_op, order_infinities_and_nans_as_a_search_does) {
  const floats rare{nan, inf, -inf, 0.0F, 1.0F, -1.0F, 3e38F, -3e38F};
  for (const std::size_t n : {3U, 9U, 65U, 192U}) {
    for (const std::size_t k : {1U, 9U, 64U, 128U}) {
      if (k > n * n) continue;
      const keys_case at = case_of_few(rare, n, k, 20, n + k);
      const choice got = chosen(bench(), at);
      for (std::size_t row = 0; row < at.rows(); ++row) {
        const plain_choice want = searched(row_of(at.first, row, n), row_of(at.second, row, n), k);
        indices idx;
        for (const std::int32_t slot : want.slots) {
          idx.push_back(slot + static_cast<std::int32_t>(row / at.tokens * n * n));
        }
        ASSERT_EQ(row_of(got.idx, row, k), idx) << k << " of " << n << ", row " << row;
      }
    }
  }
}

TEST_P(product_keys_op, give_a_slot_that_is_minus_infinity_no_weight) {
  const choice got = chosen(bench(), {2, 4, 1, {-inf, 1.0F}, {0.0F, 0.0F}});
  EXPECT_EQ(got.idx, (indices{0, 1, 2, 3}));
  EXPECT_EQ(got.val, (floats{0.0F, 0.0F, 0.5F, 0.5F}));
}

TEST_P(product_keys_op, that_take_all_slots_have_them_in_order) {
  const keys_case at = random_case(11, 121, 3, 5);
  const choice got = chosen(bench(), at);
  for (std::size_t l = 0; l < got.idx.size(); ++l) {
    EXPECT_EQ(got.idx[l], static_cast<std::int32_t>(l % 121));
  }
  expect_searched(got, at);
}

TEST_P(product_keys_op, number_slots_by_stream) {
  keys_case at = random_case(5, 6, 12, 6, 3);
  const choice got = chosen(bench(), at);
  expect_searched(got, at);
  EXPECT_GE(got.idx[8 * 6], 50) << "row 8 is of the third stream";
  at.tokens = 12;
  const choice one = chosen(bench(), at);
  EXPECT_EQ(got.idx[8 * 6], one.idx[8 * 6] + 50);
  expect_same_bits(got.val, one.val);
}

TEST_P(product_keys_op, give_a_row_the_bits_it_has_alone) {
  for (const std::size_t n : {9U, 192U}) {
    const keys_case all = random_case(n, 40, 30, 7);
    const choice together = chosen(bench(), all);
    for (const std::size_t row : {0U, 13U, 29U}) {
      const choice alone =
          chosen(bench(), {n, 40, 1, row_of(all.first, row, n), row_of(all.second, row, n)});
      EXPECT_EQ(alone.idx, row_of(together.idx, row, 40));
      expect_same_bits(alone.val, row_of(together.val, row, 40));
    }
  }
}

TEST_P(product_keys_op, add_up_the_softmax_in_slots) {
  const keys_case at = random_case(20, 100, 4, 8);
  const choice got = chosen(bench(), at);
  for (std::size_t row = 0; row < at.rows(); ++row) {
    floats terms;
    float top = -inf;
    for (const std::int32_t slot : row_of(got.idx, row, at.k)) {
      const auto s = static_cast<std::size_t>(slot);
      terms.push_back(at.first[row * at.n + s / at.n] + at.second[row * at.n + s % at.n]);
      top = std::max(top, terms.back());
    }
    for (float& term : terms) term = math::exp<float>(term - top);
    const float sum = in_slots(terms, 32);
    for (float& term : terms) term /= sum;
    expect_same_bits(row_of(got.val, row, at.k), terms);
  }
}

TEST_P(product_keys_op, take_no_rows) {
  EXPECT_TRUE(chosen(bench(), {7, 3, 5, {}, {}}).idx.empty());
}

TEST_P(product_keys_op, refuse_sizes_that_do_not_fit) {
  const auto in = bench().put(floats(64));
  const auto words = bench().put(indices(64));
  const auto to = bench().room<float>(64);
  const auto of = [](const auto& memory, std::size_t count) {
    return memory.span().subview(0, count);
  };
  const auto top = [&](std::size_t first, std::size_t second, std::size_t idx, std::size_t val,
                       std::int64_t n, std::int64_t k, std::int64_t tokens) {
    launch(bench().on(), product_key_top, read<float>{of(in, first)}, read<float>{of(in, second)},
           write<std::int32_t>{of(words, idx)}, write<float>{of(to, val)}, n, k, tokens);
  };
  EXPECT_NO_THROW(top(12, 12, 16, 16, 3, 4, 2));
  EXPECT_THROW(top(11, 12, 16, 16, 3, 4, 2), usage_error);
  EXPECT_THROW(top(12, 15, 16, 16, 3, 4, 2), usage_error);
  EXPECT_THROW(top(12, 12, 15, 16, 3, 4, 2), usage_error);
  EXPECT_THROW(top(12, 12, 16, 20, 3, 4, 2), usage_error);
  EXPECT_THROW(top(12, 12, 16, 16, 3, 4, 3), usage_error);
  EXPECT_THROW(top(12, 12, 16, 16, 3, 4, 0), usage_error);
  EXPECT_THROW(top(12, 12, 16, 16, 0, 4, 2), usage_error);
  EXPECT_THROW(top(12, 12, 0, 0, 3, 0, 2), usage_error);
  EXPECT_THROW(top(12, 12, 40, 40, 3, 10, 2), usage_error);
  const auto grad = [&](std::size_t idx, std::size_t val, std::size_t dval, std::size_t first,
                        std::size_t second, std::int64_t n, std::int64_t k) {
    launch(bench().on(), product_key_grad, read<std::int32_t>{of(words, idx)},
           read<float>{of(in, val)}, read<float>{of(in, dval)}, write<float>{of(to, first)},
           write<float>{of(to, second)}, n, k);
  };
  EXPECT_THROW(grad(15, 15, 15, 12, 12, 3, 4), usage_error);
  EXPECT_THROW(grad(16, 15, 16, 12, 12, 3, 4), usage_error);
  EXPECT_THROW(grad(16, 16, 15, 12, 12, 3, 4), usage_error);
  EXPECT_THROW(grad(16, 16, 16, 11, 12, 3, 4), usage_error);
  EXPECT_THROW(grad(16, 16, 16, 12, 11, 3, 4), usage_error);
  EXPECT_THROW(grad(16, 16, 16, 12, 12, 0, 4), usage_error);
}

std::string refusal(std::size_t rows, std::int64_t n, std::int64_t k, std::int64_t tokens) {
  const std::size_t scores = rows * static_cast<std::size_t>(n);
  const std::size_t all = rows * static_cast<std::size_t>(k);
  try {
    sdm::product_key_top_rows(scores, scores, all, all, n, k, tokens);
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

TEST(product_keys, say_what_is_too_much) {
  EXPECT_EQ(refusal(2, 1024, 128, 1), "nothing was refused");
  EXPECT_EQ(refusal(2, 1025, 128, 1),
            "product_key_top: a half has 1025 keys; give 1 at least and 1024 at most");
  EXPECT_EQ(refusal(2, 100, 129, 1),
            "product_key_top: 129 slots are to be chosen of 10000; give 1 at least and 128 at "
            "most");
  EXPECT_EQ(refusal(2, 3, 10, 1),
            "product_key_top: 10 slots are to be chosen of 9; give 1 at least and 9 at most");
  EXPECT_EQ(refusal(5, 3, 2, 2),
            "product_key_top: 5 rows are no whole streams of 2 tokens; give whole streams");
  EXPECT_EQ(refusal(2047, 1024, 1, 1), "nothing was refused");
  EXPECT_EQ(refusal(2048, 1024, 1, 1),
            "product_key_top: 2048 streams of 1048576 slots have more rows than an index of 31 "
            "bits tells apart; give 2047 streams at most");
}

template <class T>
view<const T> in(const std::vector<T>& values) {
  return {values.data(), values.size()};
}
template <class T>
view<T> to(std::vector<T>& values) {
  return {values.data(), values.size()};
}

TEST(product_keys, are_not_changed_by_the_cuts_between_threads) {
  op_bench bench{"cpu", 1};
  const keys_case at = random_case(50, 30, 101, 14);
  const choice expected = chosen(bench, at);
  const floats dval = random_values<float>(101 * 30, 15);
  const half_grads slopes = grads(bench, 50, 30, expected, dval);
  cpu_call call{{}, odd_pieces()};
  choice got{indices(expected.idx.size()), floats(expected.val.size())};
  sdm::product_key_top_cpu(call, read<float>{in(at.first)}, read<float>{in(at.second)},
                           write<std::int32_t>{to(got.idx)}, write<float>{to(got.val)}, 50, 30,
                           101);
  EXPECT_EQ(got.idx, expected.idx);
  expect_same_bits(got.val, expected.val);
  half_grads halves{floats(slopes.first.size()), floats(slopes.second.size())};
  sdm::product_key_grad_cpu(call, read<std::int32_t>{in(got.idx)}, read<float>{in(got.val)},
                            read<float>{in(dval)}, write<float>{to(halves.first)},
                            write<float>{to(halves.second)}, 50, 30);
  expect_same_bits(halves.first, slopes.first);
  expect_same_bits(halves.second, slopes.second);
}

// A simulated GPU runs the checked bodies and finds what a launch did not declare.
TEST(product_keys, have_checked_bodies_of_the_same_bits) {
  op_bench cpu{"cpu"};
  op_bench sim{"sim:seed=1"};
  for (const keys_case& at : {random_case(7, 12, 6, 16, 2), random_case(70, 64, 3, 17)}) {
    const choice expected = chosen(cpu, at);
    const choice got = chosen(sim, at);
    EXPECT_EQ(got.idx, expected.idx);
    expect_same_bits(got.val, expected.val);
    const floats dval = random_values<float>(expected.val.size(), 18);
    const half_grads want = grads(cpu, at.n, at.k, expected, dval);
    const half_grads have = grads(sim, at.n, at.k, expected, dval);
    expect_same_bits(have.first, want.first);
    expect_same_bits(have.second, want.second);
  }
}

TEST(product_keys, have_the_bits_of_the_cpu_on_cuda) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  const floats few{0.0F, -0.0F, 1.0F, -1.0F};
  for (const keys_case& at :
       {random_case(192, 64, 2000, 20, 4), random_case(1024, 128, 50, 21),
        random_case(6, 36, 33, 22), random_case(100, 5, 501, 23),
        case_of_few(few, 192, 64, 300, 24), case_of_few(few, 1000, 128, 40, 25),
        case_of_few({inf, -inf, 2.0F}, 64, 64, 100, 26)}) {
    const choice expected = chosen(cpu, at);
    const choice got = chosen(cuda, at);
    ASSERT_EQ(got.idx, expected.idx) << at.k << " of " << at.n;
    for (std::size_t l = 0; l < got.val.size(); ++l) {
      if (std::isnan(got.val[l]) && std::isnan(expected.val[l])) continue;
      ASSERT_TRUE(same_bits(got.val[l], expected.val[l])) << at.k << " of " << at.n << ": " << l;
    }
    const floats val = random_values<float>(got.val.size(), 27);
    const floats dval = random_values<float>(got.val.size(), 28);
    const half_grads want = grads(cpu, at.n, at.k, {expected.idx, val}, dval);
    const half_grads have = grads(cuda, at.n, at.k, {expected.idx, val}, dval);
    expect_same_bits(have.first, want.first);
    expect_same_bits(have.second, want.second);
  }
}

}  // namespace
}  // namespace reprise::test
