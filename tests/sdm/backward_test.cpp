#include "reprise/sdm/backward.hpp"

#include "tests/sdm/chunk_orders.hpp"
#include "tests/sdm/chunk_run.hpp"
#include "tests/sdm/token_form.hpp"

namespace reprise::test {
namespace {

using sdm_chunk::as;
using sdm_chunk::at;
using sdm_chunk::backward_results;
using sdm_chunk::chunk_case;
using sdm_chunk::chunk_shapes;
using sdm_chunk::chunk_tables;
using sdm_chunk::doubles;
using sdm_chunk::furthest;
using sdm_chunk::in_order;
using sdm_chunk::run_backward;
using sdm_chunk::run_forward;
using sdm_chunk::token_form;

template <class B, class G>
void expect_same(const backward_results<B, G>& got, const backward_results<B, G>& want) {
  expect_same_bits(got.m, want.m);
  expect_same_bits(got.bank, want.bank);
  expect_same_bits(got.cotangent, want.cotangent);
  expect_same_bits(got.of_state, want.of_state);
  expect_same_bits(got.of_cotangent, want.of_cotangent);
  expect_same_bits(got.of_both, want.of_both);
}

double plain_dot(const doubles& a, std::size_t row_a, const doubles& b, std::size_t row_b,
                 std::size_t width) {
  double sum = 0;
  for (std::size_t j = 0; j < width; ++j) sum += a[row_a * width + j] * b[row_b * width + j];
  return sum;
}

template <class X>
double sum_of_parts(const std::vector<X>& of, std::size_t i, std::size_t parts) {
  double sum = 0;
  for (std::size_t part = 0; part < parts; ++part) sum += sdm_chunk::number(of[i * parts + part]);
  return sum;
}

// The products of rows, against those of the token form: the bank before the chunk, its cotangent
// behind it, and what the tokens have.
template <class B, class G>
void expect_products(const chunk_case& c, const token_form& want, const backward_results<B, G>& got,
                     double within) {
  const sdm_sizes& s = c.sizes;
  const chunk_tables<double> tables{c};
  const auto parts = at(sdm::parts_of(s.width));
  const auto width = at(s.width);
  for (std::int64_t p = 0; p < s.streams; ++p) {
    for (std::int64_t n = 0; n < s.chunks(); ++n) {
      const std::size_t first = at((p * s.chunks() + n) * s.events());
      std::size_t r = first;
      for (const auto& [row, events] : sdm_chunk::runs_of(c, p, n)) {
        const doubles& before = want.before_chunk[at(n)];
        const doubles& behind = want.behind_chunk[at(n)];
        const double both = plain_dot(before, at(row), behind, at(row), width);
        ASSERT_NEAR(sum_of_parts(got.of_both, r, parts), both, within) << r;
        ++r;
        for (const auto& one : events) {
          const std::size_t token = at(p * s.tokens + n * s.chunk + one.token);
          const double beta = c.beta[token];
          const double state = one.writes ? beta * plain_dot(before, at(row), want.m, token, width)
                                          : plain_dot(before, at(row), c.dy, token, width);
          const double along =
              one.writes ? beta * plain_dot(behind, at(row), want.errors, token, width) : 0.0;
          const std::size_t event = first + at(one.event);
          ASSERT_NEAR(sum_of_parts(got.of_state, event, parts), state, within) << event;
          ASSERT_NEAR(sum_of_parts(got.of_cotangent, event, parts), along, within) << event;
        }
      }
    }
  }
}

class sdm_backward_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, sdm_backward_op, testing::ValuesIn(plain_devices()), device_case);

template <class B>
void expect_token_form(op_bench& bench, double within, double products_within) {
  for (const sdm_sizes& s : chunk_shapes()) {
    SCOPED_TRACE(sdm_chunk::shape_text(s));
    const chunk_case c{s, 21};
    const token_form want{c};
    const auto forward = run_forward<B>(bench, c);
    const auto got = run_backward<B, B>(bench, c, forward);
    EXPECT_LE(furthest(got.m, want.m), within);
    EXPECT_LE(furthest(got.cotangent, want.cotangent), within);
    expect_products(c, want, got, products_within);
    expect_same_bits(got.bank, as<B>(c.bank));
  }
}

TEST(sdm_backward, of_f64_is_the_token_form_but_for_rounding) {
  op_bench bench{"cpu"};
  expect_token_form<double>(bench, 1e-12, 1e-10);
}

TEST_P(sdm_backward_op, of_f32_is_the_token_form_but_for_rounding) {
  expect_token_form<float>(bench(), 2e-5, 3e-3);
}

TEST_P(sdm_backward_op, of_a_bf16_bank_is_the_token_form_but_for_a_rounding_a_chunk) {
  for (const sdm_sizes& s : chunk_shapes()) {
    SCOPED_TRACE(sdm_chunk::shape_text(s));
    const chunk_case c{s, 22};
    const token_form want{c};
    const auto forward = run_forward<bf16>(bench(), c);
    const auto narrow_one = run_backward<bf16, bf16>(bench(), c, forward);
    EXPECT_LE(furthest(narrow_one.m, want.m), 0.06);
    EXPECT_LE(furthest(narrow_one.cotangent, want.cotangent), 0.06);
    // Kept in f32 it is not rounded at all: it does not depend on what the bank holds.
    const auto wide_one = run_backward<bf16, float>(bench(), c, forward);
    EXPECT_LE(furthest(wide_one.m, want.m), 2e-5);
    EXPECT_LE(furthest(wide_one.cotangent, want.cotangent), 2e-5);
  }
}

TEST_P(sdm_backward_op, rewinds_the_bank_bit_for_bit) {
  const auto check = [&]<class B>(B) {
    for (const sdm_sizes& s : chunk_shapes()) {
      SCOPED_TRACE(sdm_chunk::shape_text(s));
      chunk_case c{s, 23, 0.6};
      c.bank[0] = std::nan("");  // a NaN is a row's like any number
      c.bank.back() = -0.0;
      const auto forward = run_forward<B>(bench(), c);
      EXPECT_NE(
          std::memcmp(forward.bank.data(), as<B>(c.bank).data(), forward.bank.size() * sizeof(B)),
          0);
      expect_same_bits(run_backward<B, B>(bench(), c, forward).bank, as<B>(c.bank));
      const auto shifted = run_forward<B>(bench(), c, saved_rows::as_stored, place::shifted);
      expect_same_bits(
          run_backward<B, B>(bench(), c, shifted, saved_rows::as_stored, place::shifted).bank,
          as<B>(c.bank));
    }
  };
  check(float{});
  check(bf16{});
}

TEST_P(sdm_backward_op, adds_in_the_order_that_is_documented) {
  const auto check = [&]<class B, class G>(B, G) {
    for (const sdm_sizes& s : chunk_shapes()) {
      SCOPED_TRACE(sdm_chunk::shape_text(s));
      const chunk_case c{s, 24};
      const auto want = in_order<B>{c}.template backward<G>();
      const auto forward = run_forward<B>(bench(), c);
      expect_same(run_backward<B, G>(bench(), c, forward), want);
      expect_same(run_backward<B, G>(bench(), c, forward, saved_rows::as_stored, place::shifted),
                  want);
    }
  };
  check(float{}, float{});
  check(bf16{}, bf16{});
  check(bf16{}, float{});
}

TEST_P(sdm_backward_op, leaves_out_indices_that_are_no_rows_of_their_stream) {
  const sdm_sizes s{.streams = 3,
                    .slots = 9,
                    .width = 24,
                    .tokens = 30,
                    .writes = 4,
                    .reads = 5,
                    .decays = 4,
                    .chunk = 8};
  const chunk_case c = sdm_chunk::with_strays(s, 31);
  const token_form want{c};
  const auto got = run_backward<float, float>(bench(), c, run_forward<float>(bench(), c));
  EXPECT_LE(furthest(got.m, want.m), 2e-5);
  EXPECT_LE(furthest(got.cotangent, want.cotangent), 2e-5);
  expect_same(got, in_order<float>{c}.backward<float>());
}

TEST_P(sdm_backward_op, never_looks_at_a_row_of_another_stream) {
  chunk_case c = sdm_chunk::two_streams(32);
  for (std::size_t i = 0; i < c.d_final.size() / 2; ++i) c.d_final[i] = std::nan("");
  const auto forward = run_forward<float>(bench(), c);
  const auto want = run_backward<float, float>(bench(), c, forward);
  sdm_chunk::name_the_first_row(c);
  const auto got = run_backward<float, float>(bench(), c, forward);
  for (std::size_t i = got.m.size() / 2; i < got.m.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got.m[i])) << i;
    ASSERT_TRUE(same_bits(got.m[i], want.m[i])) << i;
  }
}

// Quantised rows: the bank becomes what the saved rows say, and M is that.
TEST_P(sdm_backward_op, of_quantised_rows_goes_on_from_what_they_hold) {
  for (const saved_rows format : {saved_rows::fp8, saved_rows::int4}) {
    const double within = format == saved_rows::fp8 ? 0x1p-4 : 1.0 / 14;
    const chunk_case c{{.streams = 2,
                        .slots = 20,
                        .width = 300,
                        .tokens = 20,
                        .writes = 4,
                        .reads = 5,
                        .decays = 1,
                        .chunk = 20},
                       25};
    const token_form want{c};
    const auto forward = run_forward<float>(bench(), c, format);
    const auto got = run_backward<float, float>(bench(), c, forward, format);
    const double off = furthest(got.bank, c.bank);
    EXPECT_GT(off, 0.01);
    EXPECT_LE(off, 2.01 * within);  // numbers are up to 2
    // Deltas and cotangents do not depend on the bank that is rewound.
    EXPECT_LE(furthest(got.m, want.m), 2e-5);
    EXPECT_LE(furthest(got.cotangent, want.cotangent), 2e-5);
    const chunk_tables<double> tables{c};
    for (std::int64_t p = 0; p < 2; ++p) {
      const std::size_t first = at(p * c.sizes.events());
      std::size_t r = first;
      for (const auto& [row, events] : sdm_chunk::runs_of(c, p, 0)) {
        const doubles now(got.bank.begin(), got.bank.end());
        const double both = plain_dot(now, at(row), c.d_final, at(row), 300);
        ASSERT_NEAR(sum_of_parts(got.of_both, r++, 2), both, 1e-3);
      }
    }
  }
}

TEST_P(sdm_backward_op, touches_its_own_chunk_alone) {
  const sdm_sizes s = chunk_shapes()[4];
  const chunk_case c{s, 26};
  const auto forward = run_forward<float>(bench(), c);
  const auto got = run_backward<float, float>(bench(), c, forward, saved_rows::as_stored,
                                              place::aligned, {.first = 1, .last = 2});
  for (std::int64_t i = 0; i < s.streams * s.tokens * s.width; ++i) {
    const bool is_its_own = i / s.width % s.tokens / s.chunk == 1;
    ASSERT_EQ(same_bits(got.m[at(i)], poison<float>()), !is_its_own) << i;
  }
  const auto parts = sdm::parts_of(s.width);
  for (std::size_t i = 0; i < got.of_both.size(); ++i) {
    if (static_cast<std::int64_t>(i) / parts / s.events() % s.chunks() == 1) continue;
    ASSERT_TRUE(same_bits(got.of_both[i], poison<float>())) << i;
    ASSERT_TRUE(same_bits(got.of_state[i], poison<float>())) << i;
    ASSERT_TRUE(same_bits(got.of_cotangent[i], poison<float>())) << i;
  }
}

TEST_P(sdm_backward_op, lets_no_token_feel_an_earlier_one) {
  const sdm_sizes s{.streams = 1,
                    .slots = 30,
                    .width = 16,
                    .tokens = 150,
                    .writes = 2,
                    .reads = 3,
                    .decays = 1,
                    .chunk = 150};
  const chunk_case c{s, 27};
  const auto forward = run_forward<float>(bench(), c);
  const auto before = run_backward<float, float>(bench(), c, forward);
  for (std::int64_t early = 0; early < 149; early += 37) {
    chunk_case other = c;
    for (std::size_t j = 0; j < 16; ++j) other.dy[at(early * 16) + j] = std::nan("");
    const auto got = run_backward<float, float>(bench(), other, forward);
    for (std::size_t i = at((early + 1) * 16); i < got.m.size(); ++i) {
      ASSERT_TRUE(same_bits(got.m[i], before.m[i])) << i;
    }
  }
}

TEST_P(sdm_backward_op, refuses_sizes_that_do_not_fit) {
  const sdm_sizes s = chunk_shapes()[0];
  const chunk_case good{s, 28};
  const auto forward = run_forward<float>(bench(), good);
  const auto refuses = [&](auto&& change) {
    chunk_case bad = good;
    auto results = forward;
    change(bad, results);
    EXPECT_THROW((run_backward<float, float>(bench(), bad, results)), usage_error);
  };
  EXPECT_NO_THROW((run_backward<float, float>(bench(), good, forward)));
  refuses([](auto& c, auto&) { c.d_final.pop_back(); });
  refuses([](auto& c, auto&) { c.k_idx.push_back(0); });
  refuses([](auto& c, auto&) { c.dy.push_back(0); });
  refuses([](auto& c, auto&) { c.beta.push_back(0); });
  refuses([](auto&, auto& of) { of.errors.pop_back(); });
  refuses([](auto&, auto& of) { of.saved.pop_back(); });
  refuses([](auto&, auto& of) { of.saved.clear(); });
  refuses([](auto&, auto& of) { of.bank.pop_back(); });
}

TEST(sdm_backward, has_the_same_bits_on_any_number_of_threads) {
  op_bench alone{"cpu", 1};
  op_bench eight{"cpu", 8};
  const chunk_case c{{.streams = 3,
                      .slots = 60,
                      .width = 300,
                      .tokens = 70,
                      .writes = 9,
                      .reads = 8,
                      .decays = 1,
                      .chunk = 32},
                     29};
  const auto forward = run_forward<bf16>(alone, c, saved_rows::fp8);
  expect_same(run_backward<bf16, float>(eight, c, forward, saved_rows::fp8),
              run_backward<bf16, float>(alone, c, forward, saved_rows::fp8));
}

TEST(sdm_backward, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  const auto check = [&]<class B, class G>(B, G, const sdm_sizes& s, double hot) {
    SCOPED_TRACE(sdm_chunk::shape_text(s));
    const chunk_case c{s, 30, hot};
    for (const saved_rows format : {saved_rows::as_stored, saved_rows::fp8, saved_rows::int4}) {
      const auto forward = run_forward<B>(cpu, c, format);
      const auto want = run_backward<B, G>(cpu, c, forward, format);
      for (const place where : {place::aligned, place::shifted}) {
        expect_same(run_backward<B, G>(cuda, c, forward, format, where), want);
      }
    }
  };
  const sdm_sizes large{.streams = 2,
                        .slots = 4000,
                        .width = 768,
                        .tokens = 200,
                        .writes = 64,
                        .reads = 64,
                        .decays = 64,
                        .chunk = 128};
  for (const double hot : {0.05, 0.9}) {
    check(float{}, float{}, large, hot);
    check(bf16{}, bf16{}, large, hot);
    check(bf16{}, float{}, large, hot);
  }
  for (const sdm_sizes& s : chunk_shapes()) {
    check(float{}, float{}, s, 0.5);
    check(bf16{}, float{}, s, 0.5);
  }
}

}  // namespace
}  // namespace reprise::test
