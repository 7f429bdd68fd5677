#include "reprise/sdm/step.hpp"

#include <functional>

#include "tests/sdm/every_gradient_kernel.hpp"

namespace reprise::test {
namespace {

template <class B>
struct stepped {
  std::vector<B> bank;
  std::vector<sdm::arithmetic<B>> readings;
};

template <class B>
std::vector<B> bank_as(const std::vector<double>& numbers) {
  std::vector<B> made;
  for (const double one : numbers) {
    made.push_back(sdm::stored<B>(static_cast<sdm::arithmetic<B>>(one)));
  }
  return made;
}

// One token, of each stream, on a bank.
template <class B>
stepped<B> step_on(op_bench& bench, const memory_call& call, const std::vector<B>& before,
                   place where = place::aligned) {
  using X = sdm::arithmetic<B>;
  const auto bank = bench.put(before, where);
  const auto k_idx = bench.put(call.k_idx, where);
  const auto k_val = bench.put(numbers_as<X>(call.k_val), where);
  const auto v = bench.put(numbers_as<X>(call.v), where);
  const auto beta = bench.put(numbers_as<X>(call.beta), where);
  const auto g = bench.put(numbers_as<X>(call.g), where);
  const auto q_idx = bench.put(call.q_idx, where);
  const auto q_val = bench.put(numbers_as<X>(call.q_val), where);
  const auto readings = bench.template room<X>(call.v.size(), where);
  launch(bench.on(), sdm_step<B>, inout<B>{bank.span()}, read<std::int32_t>{k_idx.span()},
         read<X>{k_val.span()}, read<X>{v.span()}, read<X>{beta.span()}, read<X>{g.span()},
         read<std::int32_t>{q_idx.span()}, read<X>{q_val.span()}, write<X>{readings.span()},
         call.sizes);
  return {bench.take(bank), bench.take(readings)};
}

// Token t of each stream as a call of its own.
memory_call token_of(const memory_call& call, std::int64_t t) {
  const auto tokens = static_cast<std::size_t>(call.sizes.tokens);
  const auto one = [&]<class T>(const std::vector<T>& from) {
    const std::size_t each = from.size() / tokens / static_cast<std::size_t>(call.sizes.streams);
    std::vector<T> made;
    for (std::size_t p = 0; p < static_cast<std::size_t>(call.sizes.streams); ++p) {
      append(made, row_of(from, p * tokens + static_cast<std::size_t>(t), each));
    }
    return made;
  };
  memory_call made;
  made.sizes = call.sizes;
  made.sizes.tokens = 1;
  made.sizes.chunk = 1;
  made.k_idx = one(call.k_idx);
  made.q_idx = one(call.q_idx);
  made.k_val = one(call.k_val);
  made.v = one(call.v);
  made.beta = one(call.beta);
  made.g = one(call.g);
  made.q_val = one(call.q_val);
  return made;
}

// The equations of step.hpp, each operation rounded, in the order that is documented.
template <class B>
stepped<B> documented(const memory_call& call, const std::vector<B>& before) {
  using X = sdm::arithmetic<B>;
  const sdm_sizes& s = call.sizes;
  const auto k = numbers_as<X>(call.k_val);
  const auto c = numbers_as<X>(call.q_val);
  stepped<B> made{before, {}};
  const auto element = [&](std::int64_t row, std::int64_t j) -> B& {
    return made.bank[static_cast<std::size_t>(row * s.width + j)];
  };
  for (std::int64_t p = 0; p < s.streams; ++p) {
    const auto is_row = [&](std::int64_t row) {
      return row >= p * s.slots && row < (p + 1) * s.slots;
    };
    for (std::int64_t j = 0; j < s.width; ++j) {
      const auto decay = [&](std::size_t w) {
        const auto at = s.decays == 1 ? static_cast<std::size_t>(p) : w;
        if constexpr (std::is_same_v<X, double>) {
          return std::exp(call.g[at]);
        } else {
          return math::exp(static_cast<float>(call.g[at]));
        }
      };
      const auto first = static_cast<std::size_t>(p * s.writes);
      const auto last = static_cast<std::size_t>((p + 1) * s.writes);
      X recalled = 0;
      for (std::size_t w = first; w < last; ++w) {
        if (!is_row(call.k_idx[w])) continue;
        const X weight = k[w] * decay(w);
        const X term = weight * sdm::widened<X>(element(call.k_idx[w], j));
        recalled += term;
      }
      const auto column = static_cast<std::size_t>(p * s.width + j);
      const X error = static_cast<X>(call.v[column]) - recalled;
      const X delta = static_cast<X>(call.beta[static_cast<std::size_t>(p)]) * error;
      for (std::size_t w = first; w < last; ++w) {
        if (!is_row(call.k_idx[w])) continue;
        const X kept = decay(w) * sdm::widened<X>(element(call.k_idx[w], j));
        const X taken = k[w] * delta;
        element(call.k_idx[w], j) = sdm::stored<B>(kept + taken);
      }
      X reading = 0;
      for (auto n = static_cast<std::size_t>(p * s.reads);
           n < static_cast<std::size_t>((p + 1) * s.reads); ++n) {
        if (!is_row(call.q_idx[n])) continue;
        const X term = c[n] * sdm::widened<X>(element(call.q_idx[n], j));
        reading += term;
      }
      made.readings.push_back(reading);
    }
  }
  return made;
}

// Fewer rows than a batch of a card's, a whole one, and more; columns beside whole warps; all slots
// written and read; decays by token and by write.
const std::vector<sdm_sizes> step_sizes{
    {1, 4, 1, 1, 2, 1, 1, 1},     {2, 9, 5, 1, 3, 4, 3, 1},       {1, 6, 32, 1, 6, 6, 1, 1},
    {3, 80, 33, 1, 64, 64, 1, 1}, {1, 90, 31, 1, 65, 63, 65, 1},  {1, 200, 40, 1, 130, 150, 1, 1},
    {2, 30, 300, 1, 1, 30, 1, 1}, {1, 100, 768, 1, 64, 64, 64, 1}};

class sdm_step_op : public op_on_device {
 protected:
  // check(B{}) for each type of a bank; f64 is on the CPU alone.
  template <class F>
  void each_type(F&& check) {
    check(float{});
    check(bf16{});
    if (GetParam() == "cpu") check(double{});
  }
};
INSTANTIATE_TEST_SUITE_P(devices, sdm_step_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sdm_step_op, has_the_bits_of_the_order_that_is_documented) {
  each_type([&]<class B>(B) {
    for (const sdm_sizes& sizes : step_sizes) {
      for (const bool some_left_out : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << sizes.writes << " writes and " << sizes.reads << " reads of " << sizes.width
                     << (some_left_out ? ", some left out" : ""));
        const memory_call call =
            random_call(sizes, {.seed = 21, .strongest_decay = -3, .some_left_out = some_left_out});
        const auto bank = bank_as<B>(call.bank);
        const stepped<B> want = documented(call, bank);
        for (const place where : {place::aligned, place::shifted}) {
          const stepped<B> got = step_on(bench(), call, bank, where);
          expect_same_bits(got.bank, want.bank);
          expect_same_bits(got.readings, want.readings);
        }
      }
    }
  });
}

TEST_P(sdm_step_op, token_after_token_is_the_op) {
  const memory_call call = random_call({2, 7, 12, 30, 3, 4, 3, 8}, {.seed = 22});
  const memory_run want = in_doubles(call);
  const auto check = [&]<class B>(B, double tolerance) {
    std::vector<B> bank = bank_as<B>(call.bank);
    for (std::int64_t t = 0; t < 30; ++t) {
      const stepped<B> got = step_on(bench(), token_of(call, t), bank);
      bank = got.bank;
      for (std::size_t p = 0; p < 2; ++p) {
        const std::size_t token = p * 30 + static_cast<std::size_t>(t);
        expect_near_the_largest(row_of(got.readings, p, 12), row_of(want.readings, token, 12),
                                tolerance);
      }
    }
    std::vector<double> last;
    for (const B one : bank) last.push_back(sdm::widened<sdm::arithmetic<B>>(one));
    expect_near_the_largest(last, want.final_bank, tolerance);
  };
  check(float{}, 1e-5);
  check(bf16{}, 0.05);
  if (GetParam() == "cpu") check(double{}, 1e-13);
}

// Row 1 is decayed to nothing and written whole, then read alone.
TEST_P(sdm_step_op, a_read_sees_what_the_same_token_wrote) {
  memory_call call = random_call({1, 3, 40, 1, 1, 1, 1, 1}, {.seed = 23});
  call.k_idx = call.q_idx = {1};
  call.k_val = call.q_val = call.beta = {1};
  call.g = {-1000};
  const auto bank = bank_as<float>(call.bank);
  const stepped<float> got = step_on(bench(), call, bank);
  expect_same_bits(got.readings, numbers_as<float>(call.v));
  expect_same_bits(row_of(got.bank, 1, 40), numbers_as<float>(call.v));
  expect_same_bits(row_of(got.bank, 0, 40), row_of(bank, 0, 40));
  expect_same_bits(row_of(got.bank, 2, 40), row_of(bank, 2, 40));
}

TEST_P(sdm_step_op, refuses_sizes_that_do_not_fit) {
  const memory_call call = random_call({2, 5, 6, 1, 2, 3, 2, 1}, {.seed = 24});
  const auto refuses = [&](const std::function<void(memory_call&)>& change) {
    memory_call changed = call;
    change(changed);
    EXPECT_THROW(step_on(bench(), changed, bank_as<float>(changed.bank)), usage_error);
  };
  refuses([](memory_call& c) { c.bank.pop_back(); });
  refuses([](memory_call& c) { c.k_idx.pop_back(); });
  refuses([](memory_call& c) { c.k_val.push_back(0); });
  refuses([](memory_call& c) { c.beta.push_back(0); });
  refuses([](memory_call& c) { c.g.pop_back(); });
  refuses([](memory_call& c) { c.q_idx.push_back(0); });
  refuses([](memory_call& c) { c.q_val.pop_back(); });
  refuses([](memory_call& c) { c.sizes.decays = 3; });
  refuses([](memory_call& c) { c.sizes.tokens = 2; });
  refuses([](memory_call& c) { c.sizes.writes = 0; });
}

TEST(sdm_step, the_cuts_between_threads_change_nothing) {
  op_bench bench{"cpu", 1};
  cpu_call call{{}, odd_pieces()};
  const memory_call of = random_call({5, 70, 1000, 1, 64, 64, 64, 1}, {.seed = 25});
  auto bank = bank_as<bf16>(of.bank);
  const stepped<bf16> want = step_on(bench, of, bank);
  const auto k_val = numbers_as<float>(of.k_val);
  const auto v = numbers_as<float>(of.v);
  const auto beta = numbers_as<float>(of.beta);
  const auto g = numbers_as<float>(of.g);
  const auto q_val = numbers_as<float>(of.q_val);
  std::vector<float> readings(v.size());
  sdm::step_cpu<bf16>(call, changed_in(bank), looked_at(of.k_idx), looked_at(k_val), looked_at(v),
                      looked_at(beta), looked_at(g), looked_at(of.q_idx), looked_at(q_val),
                      written_to(readings), of.sizes);
  expect_same_bits(bank, want.bank);
  expect_same_bits(readings, want.readings);
}

TEST(sdm_step, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const sdm_sizes& sizes : step_sizes) {
    const memory_call call = random_call(sizes, {.seed = 26, .some_left_out = true});
    const auto check = [&]<class B>(B) {
      const auto bank = bank_as<B>(call.bank);
      const stepped<B> got = step_on(cuda, call, bank);
      const stepped<B> want = step_on(cpu, call, bank);
      expect_same_bits(got.bank, want.bank);
      expect_same_bits(got.readings, want.readings);
    };
    check(float{});
    check(bf16{});
  }
}

}  // namespace
}  // namespace reprise::test
