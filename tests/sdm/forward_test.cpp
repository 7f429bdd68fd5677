#include "reprise/sdm/forward.hpp"

#include "tests/sdm/chunk_orders.hpp"
#include "tests/sdm/chunk_run.hpp"
#include "tests/sdm/token_form.hpp"

namespace reprise::test {
namespace {

using sdm_chunk::as;
using sdm_chunk::at;
using sdm_chunk::chunk_case;
using sdm_chunk::chunk_shapes;
using sdm_chunk::chunk_tables;
using sdm_chunk::forward_results;
using sdm_chunk::furthest;
using sdm_chunk::in_order;
using sdm_chunk::run_forward;
using sdm_chunk::token_form;

template <class B>
void expect_same(const forward_results<B>& got, const forward_results<B>& want) {
  expect_same_bits(got.errors, want.errors);
  expect_same_bits(got.readings, want.readings);
  expect_same_bits(got.bank, want.bank);
}

class sdm_forward_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, sdm_forward_op, testing::ValuesIn(plain_devices()), device_case);

TEST(sdm_forward, of_f64_is_the_token_form_but_for_rounding) {
  op_bench bench{"cpu"};
  for (const sdm_sizes& s : chunk_shapes()) {
    SCOPED_TRACE(sdm_chunk::shape_text(s));
    const chunk_case c{s, 3};
    const token_form want{c};
    const auto got = run_forward<double>(bench, c);
    EXPECT_LE(furthest(got.errors, want.errors), 1e-12);
    EXPECT_LE(furthest(got.readings, want.readings), 1e-12);
    EXPECT_LE(furthest(got.bank, want.bank), 1e-12);
  }
}

TEST_P(sdm_forward_op, of_f32_is_the_token_form_but_for_rounding) {
  for (const sdm_sizes& s : chunk_shapes()) {
    SCOPED_TRACE(sdm_chunk::shape_text(s));
    const chunk_case c{s, 4};
    const token_form want{c};
    const auto got = run_forward<float>(bench(), c);
    EXPECT_LE(furthest(got.errors, want.errors), 1e-5);
    EXPECT_LE(furthest(got.readings, want.readings), 1e-5);
    EXPECT_LE(furthest(got.bank, want.bank), 1e-5);
  }
}

// A bank of bf16 is rounded once a chunk: to 2^-9 of what it holds, which decays.
TEST_P(sdm_forward_op, of_bf16_is_the_token_form_but_for_one_rounding_a_chunk) {
  for (const sdm_sizes& s : chunk_shapes()) {
    SCOPED_TRACE(sdm_chunk::shape_text(s));
    const chunk_case c{s, 5};
    const token_form want{c};
    const auto got = run_forward<bf16>(bench(), c);
    EXPECT_LE(furthest(got.errors, want.errors), 0.03);
    EXPECT_LE(furthest(got.readings, want.readings), 0.03);
    EXPECT_LE(furthest(got.bank, want.bank), 0.03);
  }
}

TEST_P(sdm_forward_op, adds_in_the_order_that_is_documented) {
  const auto check = [&]<class B>(B) {
    for (const sdm_sizes& s : chunk_shapes()) {
      SCOPED_TRACE(sdm_chunk::shape_text(s));
      const chunk_case c{s, 6};
      const auto want = in_order<B>{c}.forward();
      expect_same(run_forward<B>(bench(), c), want);
      expect_same(run_forward<B>(bench(), c, saved_rows::as_stored, place::shifted), want);
    }
  };
  check(float{});
  check(bf16{});
}

TEST_P(sdm_forward_op, leaves_out_indices_that_are_no_rows_of_their_stream) {
  const sdm_sizes s{.streams = 3,
                    .slots = 9,
                    .width = 24,
                    .tokens = 30,
                    .writes = 4,
                    .reads = 5,
                    .decays = 4,
                    .chunk = 8};
  const chunk_case c = sdm_chunk::with_strays(s, 7);
  const token_form want{c};
  const auto got = run_forward<float>(bench(), c);
  EXPECT_LE(furthest(got.errors, want.errors), 1e-5);
  EXPECT_LE(furthest(got.readings, want.readings), 1e-5);
  EXPECT_LE(furthest(got.bank, want.bank), 1e-5);
  expect_same(got, in_order<float>{c}.forward());
}

// A row's weight is 0 there, which is not enough: it may hold no number.
TEST_P(sdm_forward_op, never_looks_at_a_row_of_another_stream) {
  chunk_case c = sdm_chunk::two_streams(8);
  for (std::size_t i = 0; i < c.bank.size() / 2; ++i) c.bank[i] = std::nan("");
  const auto want = run_forward<float>(bench(), c);
  sdm_chunk::name_the_first_row(c);
  const auto got = run_forward<float>(bench(), c);
  for (std::size_t i = got.errors.size() / 2; i < got.errors.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got.errors[i])) << i;
    ASSERT_TRUE(same_bits(got.errors[i], want.errors[i])) << i;
    ASSERT_TRUE(same_bits(got.readings[i], want.readings[i])) << i;
  }
}

TEST_P(sdm_forward_op, saves_the_rows_that_it_writes_as_they_were) {
  const auto check = [&]<class B>(B) {
    for (const sdm_sizes& s : chunk_shapes()) {
      SCOPED_TRACE(sdm_chunk::shape_text(s));
      const chunk_case c{s, 8};
      using X = sdm::arithmetic<B>;
      const in_order<B> plain{c};
      const auto stride =
          at(row_bytes(saved_rows::as_stored, s.width, static_cast<std::int64_t>(sizeof(B))));
      auto chain = plain.forward();
      chain.bank = as<B>(c.bank);
      std::vector<std::uint8_t> saved(sdm_chunk::saved_size<B>(s, saved_rows::as_stored),
                                      poison<std::uint8_t>());
      for (std::int64_t n = 0; n < s.chunks(); ++n) {
        plain.each_run(n, [&](std::int64_t p, std::size_t first, std::size_t r) {
          const std::int32_t where = plain.tables.written[first + r];
          if (where < 0) return;
          const std::size_t to =
              (at((p * s.chunks() + n) * s.chunk * s.writes) + at(where)) * stride;
          const std::size_t row = at(plain.tables.rows[first + r]) * at(s.width);
          std::memcpy(&saved[to], &chain.bank[row], at(s.width) * sizeof(B));
        });
        plain.forward_chunk(n, chain);
      }
      expect_same_bits(run_forward<B>(bench(), c).saved, saved);
      expect_same_bits(run_forward<B>(bench(), c, saved_rows::as_stored, place::shifted).saved,
                       saved);
      static_assert(std::is_same_v<X, float>);
    }
  };
  check(float{});
  check(bf16{});
}

TEST_P(sdm_forward_op, without_a_place_for_them_saves_no_rows) {
  for (const saved_rows format : {saved_rows::as_stored, saved_rows::fp8, saved_rows::int4}) {
    const chunk_case c{chunk_shapes()[2], 9};
    expect_same(run_forward<bf16>(bench(), c, format, place::aligned, false),
                run_forward<bf16>(bench(), c));
  }
}

TEST_P(sdm_forward_op, touches_its_own_chunk_alone) {
  const sdm_sizes s = chunk_shapes()[4];
  const chunk_case c{s, 10};
  const auto got = run_forward<float>(bench(), c, saved_rows::as_stored, place::aligned, true,
                                      {.first = 1, .last = 2});
  for (std::int64_t i = 0; i < s.streams * s.tokens * s.width; ++i) {
    const bool is_its_own = i / s.width % s.tokens / s.chunk == 1;
    ASSERT_EQ(same_bits(got.errors[at(i)], poison<float>()), !is_its_own) << i;
    ASSERT_EQ(same_bits(got.readings[at(i)], poison<float>()), !is_its_own) << i;
  }
  const std::size_t chunk = got.saved.size() / at(s.streams * s.chunks());
  for (std::size_t i = 0; i < got.saved.size(); ++i) {
    if (i / chunk % at(s.chunks()) == 1) continue;
    ASSERT_EQ(got.saved[i], poison<std::uint8_t>()) << i;
  }
}

TEST_P(sdm_forward_op, lets_no_token_feel_a_later_one) {
  const sdm_sizes s{.streams = 1,
                    .slots = 30,
                    .width = 16,
                    .tokens = 150,
                    .writes = 2,
                    .reads = 3,
                    .decays = 1,
                    .chunk = 150};
  chunk_case c{s, 11};
  const auto before = run_forward<float>(bench(), c);
  for (std::int64_t late = 149; late > 0; late -= 37) {
    chunk_case other = c;
    for (std::size_t j = 0; j < 16; ++j) other.v[at(late * 16) + j] = std::nan("");
    const auto got = run_forward<float>(bench(), other);
    for (std::size_t i = 0; i < at(late * 16); ++i) {
      ASSERT_TRUE(same_bits(got.errors[i], before.errors[i])) << i;
      ASSERT_TRUE(same_bits(got.readings[i], before.readings[i])) << i;
    }
    EXPECT_TRUE(std::isnan(got.errors[at(late * 16)]));
  }
}

TEST_P(sdm_forward_op, refuses_sizes_that_do_not_fit) {
  const sdm_sizes s = chunk_shapes()[0];
  const chunk_case good{s, 12};
  EXPECT_NO_THROW(run_forward<float>(bench(), good));
  const auto refuses = [&](auto&& change) {
    chunk_case bad = good;
    change(bad);
    EXPECT_THROW(run_forward<float>(bench(), bad), usage_error);
  };
  refuses([](chunk_case& c) { c.bank.pop_back(); });
  refuses([](chunk_case& c) { c.k_idx.push_back(0); });
  refuses([](chunk_case& c) { c.q_idx.push_back(0); });
  refuses([](chunk_case& c) { c.v.push_back(0); });
  refuses([](chunk_case& c) { c.beta.push_back(0); });
  for (const std::int64_t n : {std::int64_t{-1}, s.chunks()}) {
    EXPECT_THROW(run_forward<float>(bench(), good, saved_rows::as_stored, place::aligned, true,
                                    {.first = n, .last = n + 1}),
                 usage_error);
  }
  try {
    run_forward<float>(bench(), good, saved_rows::as_stored, place::aligned, true,
                       {.first = 3, .last = 4});
    FAIL() << "taken";
  } catch (const usage_error& refused) {
    EXPECT_STREQ(refused.what(), "sdm_recall: there is no chunk 3 of 3; give one from 0 to 2");
  }
}

TEST(sdm_forward, has_the_same_bits_on_any_number_of_threads) {
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
                     13};
  const auto one = run_forward<bf16>(alone, c, saved_rows::int4);
  const auto many = run_forward<bf16>(eight, c, saved_rows::int4);
  expect_same(many, one);
  expect_same_bits(many.saved, one.saved);
}

TEST(sdm_forward, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  const auto check = [&]<class B>(B, const sdm_sizes& s, double hot) {
    SCOPED_TRACE(sdm_chunk::shape_text(s));
    const chunk_case c{s, 14, hot};
    for (const saved_rows format : {saved_rows::as_stored, saved_rows::fp8, saved_rows::int4}) {
      for (const place where : {place::aligned, place::shifted}) {
        const auto got = run_forward<B>(cuda, c, format, where);
        const auto want = run_forward<B>(cpu, c, format);
        expect_same(got, want);
        expect_same_bits(got.saved, want.saved);
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
    check(float{}, large, hot);
    check(bf16{}, large, hot);
  }
  for (const sdm_sizes& s : chunk_shapes()) {
    check(float{}, s, 0.5);
    check(bf16{}, s, 0.5);
  }
}

}  // namespace
}  // namespace reprise::test
