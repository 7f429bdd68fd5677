#include "reprise/ops/attention.hpp"

#include <limits>
#include <optional>

#include "reprise/ops/lanes.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

// Rows that attend to a cache of `slots` slots, and what they are given.
template <class A, class C>
struct inputs {
  inputs(const attention_shape& of, std::int64_t cache_slots,
         const std::vector<std::int32_t>& row_slots, const std::vector<std::int32_t>& row_positions,
         std::uint64_t seed)
      : shape{of}, slots{row_slots}, positions{row_positions} {
    const auto row = static_cast<std::size_t>(shape.heads * shape.head_dim);
    const auto cache =
        static_cast<std::size_t>(cache_slots * shape.kv_heads * shape.capacity * shape.head_dim);
    q = random_values<A>(slots.size() * row, seed);
    keys = random_values<C>(cache, seed + 1);
    values = random_values<C>(cache, seed + 2);
  }

  std::size_t width() const { return static_cast<std::size_t>(shape.heads * shape.head_dim); }

  attention_shape shape;
  std::vector<std::int32_t> slots, positions;
  std::vector<A> q;
  std::vector<C> keys, values;
};

template <class A, class C>
std::vector<A> attended(op_bench& bench, const inputs<A, C>& in, place where = place::aligned) {
  const auto q = bench.put(in.q, where);
  const auto keys = bench.put(in.keys);
  const auto values = bench.put(in.values);
  const auto slots = bench.put(in.slots, where);
  const auto positions = bench.put(in.positions, where);
  const auto out = bench.template room<A>(in.q.size(), where);
  const lending_stream on{bench.on()};
  launch(on, attention<A, C>, read<A>{q.span()}, read<C>{keys.span()}, read<C>{values.span()},
         read<std::int32_t>{slots.span()}, read<std::int32_t>{positions.span()},
         write<A>{out.span()}, in.shape);
  return bench.take(out);
}

template <class A, class C>
std::vector<double> reference(const inputs<A, C>& in) {
  const auto [heads, kv_heads, head_dim, capacity] = in.shape;
  std::vector<double> out(in.q.size());
  for (std::size_t at = 0; at < out.size(); at += static_cast<std::size_t>(head_dim)) {
    const auto head = static_cast<std::int64_t>(at) / head_dim;
    const std::size_t row = static_cast<std::size_t>(head / heads);
    const auto cache = static_cast<std::int64_t>(in.keys.size()) / (kv_heads * capacity * head_dim);
    if (in.slots[row] < 0 || in.slots[row] >= cache) continue;
    if (in.positions[row] < 0 || in.positions[row] >= capacity) continue;
    const std::int64_t kv = in.slots[row] * kv_heads + head % heads / (heads / kv_heads);
    const auto element = [&](const std::vector<C>& of, std::int64_t t, std::int64_t d) {
      const auto i = static_cast<std::size_t>((kv * capacity + t) * head_dim + d);
      return static_cast<double>(widen(of[i]));
    };
    std::vector<double> weight;
    for (std::int64_t t = 0; t <= in.positions[row]; ++t) {
      double dot = 0;
      for (std::int64_t d = 0; d < head_dim; ++d) {
        dot += widen(in.q[at + static_cast<std::size_t>(d)]) * element(in.keys, t, d);
      }
      weight.push_back(dot / std::sqrt(static_cast<double>(head_dim)));
    }
    const double top = *std::max_element(weight.begin(), weight.end());
    double total = 0;
    for (double& w : weight) total += w = std::exp(w - top);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      double sum = 0;
      for (std::size_t t = 0; t < weight.size(); ++t) {
        sum += weight[t] * element(in.values, static_cast<std::int64_t>(t), d);
      }
      out[at + static_cast<std::size_t>(d)] = sum / total;
    }
  }
  return out;
}

constexpr double floor_of_error = 1e-5;  // values lie within 2, scores within some 30

// Lengths at and around the cuts between chunks, in slots out of order; the last three are padding.
template <class A, class C>
inputs<A, C> some_rows(const attention_shape& shape, std::uint64_t seed) {
  std::vector<std::int32_t> slots, positions;
  for (const int position : {0, 1, 7, 15, 16, 62, 63, 64, 126, 127, 128, 129, 255, 256, 299}) {
    positions.push_back(std::min(position, static_cast<std::int32_t>(shape.capacity) - 1));
    slots.push_back(static_cast<std::int32_t>(slots.size() * 2 % 3));
  }
  append(slots, {0, 3, -1});
  append(positions, {-1, 5, 5});
  return {shape, 3, slots, positions, seed};
}

const std::vector<attention_shape> shapes = {
    {1, 1, 8, 1},    {6, 2, 32, 300}, {2, 1, 16, 300},  {3, 3, 64, 130},  {8, 2, 128, 300},
    {5, 1, 40, 256}, {16, 1, 24, 70}, {14, 2, 96, 129}, {4, 4, 256, 300}, {10, 1, 248, 64}};

template <class F>
void each_case(F&& check) {
  each_pair([&]<class A, class C>(types<A, C>) {
    for (const attention_shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.heads << "/" << s.kv_heads << " heads of " << s.head_dim
                                      << ", capacity " << s.capacity);
      check(types<A, C>{}, s);
    }
  });
}

class attention_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, attention_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(attention_op, agrees_with_a_double_reference_at_every_shape) {
  each_case([&]<class A, class C>(types<A, C>, const attention_shape& s) {
    const auto in = some_rows<A, C>(s, 1);
    expect_near(attended(bench(), in), reference(in), floor_of_error);
  });
}

TEST_P(attention_op, rows_at_odd_addresses_have_the_same_bits) {
  each_case([&]<class A, class C>(types<A, C>, const attention_shape& s) {
    const auto in = some_rows<A, C>(s, 2);
    expect_same_bits(attended(bench(), in, place::shifted), attended(bench(), in));
  });
}

// Rows [first, end) of what `of` holds.
template <class A, class C>
inputs<A, C> part(const inputs<A, C>& of, std::size_t first, std::size_t end) {
  inputs<A, C> some = of;
  const auto cut = [&](auto& list, std::size_t width) {
    list = {list.begin() + static_cast<std::ptrdiff_t>(first * width),
            list.begin() + static_cast<std::ptrdiff_t>(end * width)};
  };
  cut(some.slots, 1);
  cut(some.positions, 1);
  cut(some.q, of.width());
  return some;
}

TEST_P(attention_op, each_row_has_the_bits_it_has_alone) {
  each_case([&]<class A, class C>(types<A, C>, const attention_shape& s) {
    const auto in = some_rows<A, C>(s, 3);
    const std::size_t m = in.slots.size();
    std::vector<A> alone;
    for (std::size_t row = 0; row < m; ++row) {
      append(alone, attended(bench(), part(in, row, row + 1)));
    }
    for (std::size_t first = 0; first < m; ++first) {
      expect_same_bits(attended(bench(), part(in, first, m)), rows_from(alone, first, in.width()));
    }
  });
}

TEST_P(attention_op, neither_capacity_nor_what_lies_past_a_row_matters) {
  each_pair([&]<class A, class C>(types<A, C>) {
    const std::int64_t kept = 70;
    const inputs<A, C> small{{4, 2, 32, kept}, 1, {0, 0, 0}, {0, 33, 69}, 4};
    inputs<A, C> large{{4, 2, 32, 1000}, 2, {1, 1, 1}, small.positions, 5};
    large.q = small.q;
    std::fill(large.keys.begin(), large.keys.end(),
              narrow<C>(std::numeric_limits<float>::quiet_NaN()));
    large.values = large.keys;
    for (std::int64_t head = 0; head < 2; ++head) {
      const auto from = static_cast<std::ptrdiff_t>(head * kept * 32);
      const auto to = static_cast<std::ptrdiff_t>((2 + head) * 1000 * 32);
      std::copy_n(small.keys.begin() + from, kept * 32, large.keys.begin() + to);
      std::copy_n(small.values.begin() + from, kept * 32, large.values.begin() + to);
    }
    expect_same_bits(attended(bench(), large), attended(bench(), small));
  });
}

TEST_P(attention_op, rows_past_what_one_workspace_takes_change_nothing) {
  const attention_shape shape{16, 1, 128, 8192};
  const std::size_t m = 150;
  ASSERT_LT(ops::attention_pass_rows(150, shape), 150);
  std::vector<std::int32_t> slots(m), positions;
  for (std::int32_t i = 0; i < 150; ++i) positions.push_back(i * 7 % 190);
  const inputs<bf16, bf16> in{shape, 1, slots, positions, 6};
  const auto all = attended(bench(), in);
  for (const std::size_t row : {0, 120, 126, 127, 128, 149}) {
    expect_same_bits(row_of(all, row, in.width()), attended(bench(), part(in, row, row + 1)));
  }
}

// Large scores: one key takes all, and nothing overflows.
TEST_P(attention_op, a_key_far_above_the_others_is_what_comes_out) {
  inputs<float, float> in{{1, 1, 8, 200}, 1, {0}, {199}, 7};
  for (float& q : in.q) q = 100.0f;
  for (std::size_t d = 0; d < 8; ++d) in.keys[150 * 8 + d] = 100.0f;
  const auto out = attended(bench(), in);
  expect_same_bits(out, {in.values.begin() + 150 * 8, in.values.begin() + 151 * 8});
}

template <class A, class C>
struct appended {
  std::vector<C> keys, values;
};
template <class A, class C>
appended<A, C> append_rows(op_bench& bench, const inputs<A, C>& in, const std::vector<A>& k,
                           const std::vector<A>& v, place where = place::aligned) {
  const auto rows = bench.put(k, where);
  const auto row_values = bench.put(v, where);
  const auto slots = bench.put(in.slots);
  const auto positions = bench.put(in.positions);
  const auto keys = bench.put(in.keys, where);
  const auto values = bench.put(in.values, where);
  launch(bench.on(), cache_append<A, C>, read<A>{rows.span()}, read<A>{row_values.span()},
         read<std::int32_t>{slots.span()}, read<std::int32_t>{positions.span()},
         write<C>{keys.span()}, write<C>{values.span()}, in.shape);
  return {bench.take(keys), bench.take(values)};
}

TEST_P(attention_op, append_stores_each_row_at_its_place_and_nothing_else) {
  each_case([&]<class A, class C>(types<A, C>, const attention_shape& s) {
    // No place twice; one row is padding.
    const auto last = static_cast<std::int32_t>(s.capacity) - 1;
    const inputs<A, C> in{s, 3, {2, 0, 1, 1, 3}, {last, 0, last, -1, 0}, 8};
    const auto width = static_cast<std::size_t>(s.kv_heads * s.head_dim);
    const auto k = random_values<A>(in.slots.size() * width, 9);
    const auto v = random_values<A>(in.slots.size() * width, 10);
    inputs<A, C> want = in;
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t j = 0; j < width; ++j) {
        const auto d = static_cast<std::int64_t>(j) % s.head_dim;
        const auto head = in.slots[row] * s.kv_heads + static_cast<std::int64_t>(j) / s.head_dim;
        const auto to =
            static_cast<std::size_t>((head * s.capacity + in.positions[row]) * s.head_dim + d);
        want.keys[to] = narrow<C>(widen(k[row * width + j]));
        want.values[to] = narrow<C>(widen(v[row * width + j]));
      }
    }
    for (const place where : {place::aligned, place::shifted}) {
      const auto got = append_rows(bench(), in, k, v, where);
      expect_same_bits(got.keys, want.keys);
      expect_same_bits(got.values, want.values);
    }
  });
}

TEST_P(attention_op, refuses_shapes_and_sizes_that_do_not_fit) {
  const inputs<float, float> good{{4, 2, 16, 20}, 2, {0, 1}, {3, 4}, 11};
  const auto with = [&](auto&& change) {
    inputs<float, float> changed = good;
    change(changed);
    return [this, changed] { attended(bench(), changed); };
  };
  EXPECT_NO_THROW(with([](auto&) {})());
  EXPECT_THROW(with([](auto& in) { in.shape.heads = 3; })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.shape.heads = 34; })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.shape.kv_heads = 0; })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.shape.head_dim = 12; })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.shape.head_dim = 264; })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.shape.capacity = 0; })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.shape.capacity = -1; })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.keys.pop_back(); })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.values.resize(in.values.size() / 2); })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.positions.pop_back(); })(), usage_error);
  EXPECT_THROW(with([](auto& in) { in.q.pop_back(); })(), usage_error);
}

template <class Rung, class A, class C>
std::vector<A> by_rung(const inputs<A, C>& in, worker_ref workers) {
  const auto all = [](const auto& list) { return view{list.data(), list.size()}; };
  std::vector<A> out(in.q.size());
  cpu_call call{{}, workers};
  ops::attention_cpu<Rung>(call, read<A>{all(in.q)}, read<C>{all(in.keys)}, read<C>{all(in.values)},
                           read<std::int32_t>{all(in.slots)}, read<std::int32_t>{all(in.positions)},
                           write<A>{view<A>{out.data(), out.size()}}, in.shape);
  return out;
}

TEST(attention, the_cuts_between_threads_change_nothing) {
  each_case([&]<class A, class C>(types<A, C>, const attention_shape& s) {
    const auto in = some_rows<A, C>(s, 12);
    expect_same_bits(by_rung<ops::generic_rung>(in, odd_pieces()),
                     by_rung<ops::generic_rung>(in, {}));
  });
}

#if defined(__x86_64__)
TEST(attention, every_rung_gives_the_bits_of_generic) {
  each_case([&]<class A, class C>(types<A, C>, const attention_shape& s) {
    const auto in = some_rows<A, C>(s, 13);
    const auto generic = by_rung<ops::generic_rung>(in, {});
    if (__builtin_cpu_supports("avx2")) {
      expect_same_bits(by_rung<ops::avx2_rung>(in, {}), generic);
    }
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      expect_same_bits(by_rung<ops::avx512_rung>(in, {}), generic);
    }
  });
}
#endif

TEST(attention, cuda_is_near_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  each_case([&]<class A, class C>(types<A, C>, const attention_shape& s) {
    const auto in = some_rows<A, C>(s, 14);
    const auto want = attended(cpu, in);
    const auto got = attended(cuda, in);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double error = std::abs(static_cast<double>(widen(got[i])) - widen(want[i]));
      ASSERT_LE(error, 2 * (rounding<A> * std::abs(widen(want[i])) + floor_of_error))
          << "element " << i;
    }
  });
}

TEST(attention, on_cuda_a_cache_at_an_odd_address_is_refused) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cuda{automatic_device()};
  const auto q = cuda.put(std::vector<float>(8, 1.0f));
  const auto cache = cuda.put(std::vector<float>(8, 1.0f), place::shifted);
  const auto zero = cuda.put(std::vector<std::int32_t>{0});
  const lending_stream on{cuda.on()};
  EXPECT_THROW(
      launch(on, attention<float, float>, read<float>{q.span()}, read<float>{cache.span()},
             read<float>{cache.span()}, read<std::int32_t>{zero.span()},
             read<std::int32_t>{zero.span()}, write<float>{q.span()}, attention_shape{1, 1, 8, 1}),
      usage_error);
}

}  // namespace
}  // namespace reprise::test
