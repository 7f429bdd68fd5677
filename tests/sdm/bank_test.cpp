#include "reprise/sdm/bank.hpp"

#include <bit>
#include <limits>

#include "tests/sdm/every_gradient_kernel.hpp"

namespace reprise::test {
namespace {

using doubles = std::vector<double>;

template <class B>
std::vector<B> expanded(op_bench& bench, const std::vector<sdm::arithmetic<B>>& initial,
                        std::size_t each, std::int64_t streams, place where = place::aligned) {
  using X = sdm::arithmetic<B>;
  const auto from = bench.put(initial, where);
  const auto to = bench.template room<B>(each * static_cast<std::size_t>(streams), where);
  launch(bench.on(), sdm_expand<B>, read<X>{from.span()}, write<B>{to.span()}, streams);
  return bench.take(to);
}

template <class G>
std::vector<sdm::arithmetic<G>> bank_grad(op_bench& bench, const std::vector<G>& cotangent,
                                          const std::vector<sdm::arithmetic<G>>& before,
                                          gradient_rule by, std::int64_t streams,
                                          place where = place::aligned) {
  using X = sdm::arithmetic<G>;
  const auto from = bench.put(cotangent, where);
  const auto to = bench.put(before, where);
  const auto rule = bench.put(std::vector<std::int32_t>{static_cast<std::int32_t>(by)});
  launch(bench.on(), sdm_bank_grad<G>, read<G>{from.span()}, inout<X>{to.span()},
         read<std::int32_t>{rule.span()}, streams);
  return bench.take(to);
}

template <class To, class From>
std::vector<To> cast(op_bench& bench, const std::vector<From>& from, std::size_t count,
                     place where = place::aligned) {
  const auto source = bench.put(from, where);
  const auto to = bench.template room<To>(count, where);
  launch(bench.on(), sdm_cast<To, From>, read<From>{source.span()}, write<To>{to.span()});
  return bench.take(to);
}

// Around whole eights, and more than a block of a card has.
constexpr std::size_t lengths[] = {1, 7, 8, 9, 1000, 4096, 5001};

class sdm_bank_op : public op_on_device {
 protected:
  // check(B{}) for each type of a bank; f64 is on the CPU alone.
  template <class F>
  void each_type(F&& check) {
    check(float{});
    check(bf16{});
    if (GetParam() == "cpu") check(double{});
  }
};
INSTANTIATE_TEST_SUITE_P(devices, sdm_bank_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sdm_bank_op, expanding_gives_each_stream_the_learned_bank_in_the_banks_type) {
  each_type([&]<class B>(B) {
    using X = sdm::arithmetic<B>;
    for (const std::size_t each : lengths) {
      for (const std::int64_t streams : {1, 3, 70}) {
        const auto initial = random_numbers<X>(each, 1);
        std::vector<B> want;
        for (std::int64_t p = 0; p < streams; ++p) {
          for (const X one : initial) want.push_back(sdm::stored<B>(one));
        }
        expect_same_bits(expanded<B>(bench(), initial, each, streams), want);
        expect_same_bits(expanded<B>(bench(), initial, each, streams, place::shifted), want);
      }
    }
  });
}

TEST_P(sdm_bank_op, expanding_nothing_gives_zeros) {
  each_type([&]<class B>(B) {
    expect_same_bits(expanded<B>(bench(), {}, 24, 3), std::vector<B>(72, B{}));
    expect_same_bits(expanded<B>(bench(), {}, 23, 3, place::shifted), std::vector<B>(69, B{}));
  });
}

TEST_P(sdm_bank_op, the_gradient_sums_streams_in_their_order_and_follows_its_rule) {
  each_type([&]<class G>(G) {
    using X = sdm::arithmetic<G>;
    for (const std::size_t each : lengths) {
      for (const std::int64_t streams : {1, 2, 13}) {
        const auto cotangent = random_numbers<G>(each * static_cast<std::size_t>(streams), 2);
        const auto before = random_numbers<X>(each, 3);
        std::vector<X> sums(each);
        for (std::size_t i = 0; i < cotangent.size(); ++i) {
          sums[i % each] += sdm::widened<X>(cotangent[i]);
        }
        std::vector<X> added;
        for (std::size_t i = 0; i < each; ++i) added.push_back(before[i] + sums[i]);
        const std::vector<X> unread(each, std::numeric_limits<X>::quiet_NaN());
        for (const place where : {place::aligned, place::shifted}) {
          const auto put = [&](const std::vector<X>& old, gradient_rule by) {
            return bank_grad(bench(), cotangent, old, by, streams, where);
          };
          expect_same_bits(put(unread, gradient_rule::write), sums);
          expect_same_bits(put(before, gradient_rule::add), added);
          expect_same_bits(put(before, gradient_rule::leave), before);
          expect_same_bits(put(before, gradient_rule{7}), before);  // no rule: left alone
        }
      }
    }
  });
}

TEST_P(sdm_bank_op, a_cast_rounds_to_the_nearest_and_changes_no_bit_where_it_need_not) {
  for (const std::size_t count : lengths) {
    for (const place where : {place::aligned, place::shifted}) {
      const auto floats = random_values<float>(count, 4);
      const auto halves = random_values<bf16>(count, 5);
      expect_same_bits(cast<float>(bench(), floats, count, where), floats);
      expect_same_bits(cast<bf16>(bench(), halves, count, where), halves);
      std::vector<bf16> narrowed;
      std::vector<float> widened;
      for (const float one : floats) narrowed.push_back(narrow<bf16>(one));
      for (const bf16 one : halves) widened.push_back(widen(one));
      expect_same_bits(cast<bf16>(bench(), floats, count, where), narrowed);
      expect_same_bits(cast<float>(bench(), halves, count, where), widened);
    }
  }
  const std::vector<float> rare{std::bit_cast<float>(0x7f800001U), -0.0F, 0x1p-149F};
  expect_same_bits(cast<float>(bench(), rare, 3), rare);
  const std::vector<bf16> rare_halves{{0x7f81}, {0x8000}, {0x0001}};
  expect_same_bits(cast<bf16>(bench(), rare_halves, 3), rare_halves);
  if (GetParam() != "cpu") return;
  const auto doubles_of = random_numbers<double>(1000, 6);
  expect_same_bits(cast<double>(bench(), doubles_of, 1000), doubles_of);
}

TEST_P(sdm_bank_op, a_cast_of_nothing_gives_zeros) {
  for (const std::size_t count : {24U, 23U}) {
    const std::vector<float> zeros(count, 0.0F);
    const std::vector<bf16> halves(count, bf16{0});
    expect_same_bits(cast<float>(bench(), std::vector<float>{}, count), zeros);
    expect_same_bits(cast<float>(bench(), std::vector<bf16>{}, count), zeros);
    expect_same_bits(cast<bf16>(bench(), std::vector<bf16>{}, count, place::shifted), halves);
    expect_same_bits(cast<bf16>(bench(), std::vector<float>{}, count, place::shifted), halves);
  }
}

TEST_P(sdm_bank_op, refuse_sizes_that_do_not_fit) {
  const std::vector<float> five(5);
  const std::vector<float> six(6);
  EXPECT_THROW(expanded<float>(bench(), five, 5, 0), usage_error);
  EXPECT_THROW(expanded<float>(bench(), five, 6, 2), usage_error);
  EXPECT_THROW(bank_grad<float>(bench(), six, five, gradient_rule::write, 1), usage_error);
  EXPECT_THROW(bank_grad<float>(bench(), six, six, gradient_rule::write, 2), usage_error);
  EXPECT_THROW(bank_grad<float>(bench(), five, five, gradient_rule::write, 2), usage_error);
  EXPECT_THROW(bank_grad<float>(bench(), five, five, gradient_rule::write, 0), usage_error);
  EXPECT_THROW(cast<float>(bench(), five, 6), usage_error);
}

TEST(sdm_bank, the_cuts_between_threads_change_nothing) {
  op_bench bench{"cpu", 1};
  cpu_call call{{}, odd_pieces()};
  constexpr std::size_t each = 200'000;
  const auto initial = random_values<float>(each, 7);
  std::vector<bf16> bank(3 * each);
  sdm::expand_cpu<bf16>(call, looked_at(initial), written_to(bank), 3);
  expect_same_bits(bank, expanded<bf16>(bench, initial, each, 3));
  std::vector<float> grad = initial;
  const std::vector<std::int32_t> add{static_cast<std::int32_t>(gradient_rule::add)};
  sdm::bank_grad_cpu<bf16>(call, looked_at(bank), changed_in(grad), looked_at(add), 3);
  expect_same_bits(grad, bank_grad(bench, bank, initial, gradient_rule::add, 3));
  std::vector<float> wide(bank.size());
  sdm::cast_cpu<float, bf16>(call, looked_at(bank), written_to(wide));
  expect_same_bits(wide, cast<float>(bench, bank, bank.size()));
}

TEST(sdm_bank, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  const auto check = [&]<class B>(B) {
    for (const std::size_t each : {4096U, 100'003U}) {
      const auto initial = random_values<float>(each, 8);
      const auto bank = expanded<B>(cpu, initial, each, 5);
      expect_same_bits(expanded<B>(cuda, initial, each, 5), bank);
      expect_same_bits(bank_grad(cuda, bank, initial, gradient_rule::add, 5),
                       bank_grad(cpu, bank, initial, gradient_rule::add, 5));
      expect_same_bits(cast<bf16>(cuda, bank, bank.size()), cast<bf16>(cpu, bank, bank.size()));
    }
  };
  check(float{});
  check(bf16{});
}

}  // namespace
}  // namespace reprise::test
