// Each CUDA body against the CPU body, which is the reference: the same inputs, over one table of
// shapes, odd ones included. What is exact on both is compared bit for bit.
#include <array>
#include <functional>

#include "reprise/ops/argmax.hpp"
#include "reprise/ops/attention.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/ops/random.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/ops/rope.hpp"
#include "reprise/ops/sample.hpp"
#include "reprise/ops/swiglu.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using elements = std::vector<double>;

struct parity_case {
  std::string name;
  double bound;  // of the difference, over the largest magnitude of the reference; 0: exact
  std::function<elements(op_bench&)> run;
};

template <class T>
elements widened(const std::vector<T>& values) {
  elements all;
  for (const T& value : values) {
    if constexpr (std::is_integral_v<T>) {
      all.push_back(static_cast<double>(value));
    } else {
      all.push_back(widen(value));
    }
  }
  return all;
}

std::vector<std::int32_t> tokens_below(std::int32_t limit, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<std::int32_t>(i * 7919U % static_cast<std::size_t>(limit));
  }
  return tokens;
}

template <class T>
constexpr double storage_bound = std::is_same_v<T, bf16> ? 0x1p-7 : 2e-6;

template <class A, class W>
std::string pair_name() {
  return std::string{name_of(dtype_of<A>)} + "_" + std::string{name_of(dtype_of<W>)};
}

template <class A, class W>
void add_matmuls(std::vector<parity_case>& table) {
  const std::vector<std::array<std::int64_t, 3>> shapes{
      {1, 1, 1},   {1, 192, 192}, {3, 64, 192},   {5, 7, 13},      {8, 512, 192}, {17, 192, 512},
      {33, 9, 65}, {64, 256, 40}, {100, 33, 129}, {2, 4096, 1024}, {130, 31, 31},
  };
  for (const auto& [m, n, k] : shapes) {
    const auto x = random_values<A>(static_cast<std::size_t>(m * k), 1);
    const auto w = random_values<W>(static_cast<std::size_t>(n * k), 2);
    const auto before = random_values<A>(static_cast<std::size_t>(m * n), 3);
    for (const bool add : {false, true}) {
      table.push_back({(add ? "matmul_add_" : "matmul_") + pair_name<A, W>() + "_" +
                           std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
                       storage_bound<A>, [=, n = n, k = k](op_bench& bench) {
                         const auto dx = bench.put(x);
                         const auto dw = bench.put(w);
                         const auto y = bench.put(before);
                         if (add) {
                           launch(bench.on(), matmul_add<A, W>, read<A>{dx.span()},
                                  read<W>{dw.span()}, inout<A>{y.span()}, n, k);
                         } else {
                           launch(bench.on(), matmul<A, W>, read<A>{dx.span()}, read<W>{dw.span()},
                                  write<A>{y.span()}, n, k);
                         }
                         return widened(bench.take(y));
                       }});
    }
  }
}

template <class A, class W>
void add_row_ops(std::vector<parity_case>& table) {
  for (const std::int64_t width : {1, 7, 192, 1000, 4096}) {
    const auto rows = std::size_t{5};
    const auto count = rows * static_cast<std::size_t>(width);
    const auto x = random_values<A>(count, 4);
    const auto gain = random_values<W>(static_cast<std::size_t>(width), 5);
    table.push_back({"rms_norm_" + pair_name<A, W>() + "_" + std::to_string(width),
                     storage_bound<A>, [=](op_bench& bench) {
                       const auto dx = bench.put(x);
                       const auto dg = bench.put(gain);
                       const auto y = bench.template room<A>(count);
                       launch(bench.on(), rms_norm<A, W>, read<A>{dx.span()}, read<W>{dg.span()},
                              write<A>{y.span()}, width, 1e-5F);
                       return widened(bench.take(y));
                     }});
    const auto rows_of_table = random_values<W>(11U * static_cast<std::size_t>(width), 6);
    const auto tokens = tokens_below(11, rows);
    table.push_back(
        {"embedding_" + pair_name<A, W>() + "_" + std::to_string(width), 0, [=](op_bench& bench) {
           const auto dt = bench.put(tokens);
           const auto dw = bench.put(rows_of_table);
           const auto y = bench.template room<A>(count);
           launch(bench.on(), embedding<A, W>, read<std::int32_t>{dt.span()}, read<W>{dw.span()},
                  write<A>{y.span()}, width);
           return widened(bench.take(y));
         }});
  }
}

template <class A>
void add_elementwise(std::vector<parity_case>& table) {
  const std::string type{name_of(dtype_of<A>)};
  for (const std::size_t count : {1U, 31U, 1000U, 12345U}) {
    const auto gate = random_values<A>(count, 7, 8.0F);
    const auto up = random_values<A>(count, 8);
    table.push_back(
        {"swiglu_" + type + "_" + std::to_string(count), storage_bound<A>, [=](op_bench& bench) {
           const auto dg = bench.put(gate);
           const auto du = bench.put(up);
           const auto y = bench.template room<A>(count);
           launch(bench.on(), swiglu<A>, read<A>{dg.span()}, read<A>{du.span()},
                  write<A>{y.span()});
           return widened(bench.take(y));
         }});
    table.push_back(
        {"random_normal_" + type + "_" + std::to_string(count), 0, [=](op_bench& bench) {
           const auto y = bench.template room<A>(count);
           launch(bench.on(), random_normal<A>, write<A>{y.span()}, std::uint64_t{9},
                  std::uint64_t{3}, 0.5F);
           return widened(bench.take(y));
         }});
  }
  for (const std::int64_t head_dim : {8, 32, 128}) {
    const std::vector<std::int32_t> positions{0, 1, 17, 1023, 100000};
    const std::int64_t heads = 3;
    const auto x =
        random_values<A>(positions.size() * static_cast<std::size_t>(heads * head_dim), 9);
    const auto frequencies = rope_inverse_frequencies(head_dim, 10000.0);
    table.push_back(
        {"rope_" + type + "_" + std::to_string(head_dim), storage_bound<A>, [=](op_bench& bench) {
           const auto y = bench.put(x);
           const auto dp = bench.put(positions);
           const auto df = bench.put(frequencies);
           launch(bench.on(), rope<A>, inout<A>{y.span()}, read<std::int32_t>{dp.span()},
                  read<float>{df.span()}, heads, head_dim);
           return widened(bench.take(y));
         }});
  }
}

template <class A, class C>
void add_attentions(std::vector<parity_case>& table) {
  const std::vector<attention_shape> shapes{
      {6, 2, 32, 64}, {1, 1, 8, 5}, {8, 8, 64, 600}, {32, 8, 128, 300}};
  for (const attention_shape& shape : shapes) {
    const std::vector<std::int32_t> slots{0, 1, 1, 0};
    const auto last = static_cast<std::int32_t>(shape.capacity - 1);
    const std::vector<std::int32_t> positions{0, last, last / 2, std::min(last, 257)};
    const auto row = static_cast<std::size_t>(shape.heads * shape.head_dim);
    const auto cache =
        static_cast<std::size_t>(2 * shape.kv_heads * shape.capacity * shape.head_dim);
    const auto q = random_values<A>(slots.size() * row, 10);
    const auto keys = random_values<C>(cache, 11);
    const auto values = random_values<C>(cache, 12);
    table.push_back({"attention_" + pair_name<A, C>() + "_" + std::to_string(shape.heads) + "_" +
                         std::to_string(shape.kv_heads) + "_" + std::to_string(shape.head_dim) +
                         "_" + std::to_string(shape.capacity),
                     2 * storage_bound<A>, [=](op_bench& bench) {
                       const auto dq = bench.put(q);
                       const auto dk = bench.put(keys);
                       const auto dv = bench.put(values);
                       const auto ds = bench.put(slots);
                       const auto dp = bench.put(positions);
                       const auto y = bench.template room<A>(q.size());
                       const lending_stream on{bench.on()};
                       launch(on, attention<A, C>, read<A>{dq.span()}, read<C>{dk.span()},
                              read<C>{dv.span()}, read<std::int32_t>{ds.span()},
                              read<std::int32_t>{dp.span()}, write<A>{y.span()}, shape);
                       return widened(bench.take(y));
                     }});
  }
}

void add_choices(std::vector<parity_case>& table) {
  for (const std::int64_t width : {1, 2, 255, 256, 5000, 151936}) {
    const auto rows = std::size_t{3};
    const auto logits = random_values<float>(rows * static_cast<std::size_t>(width), 13, 6.0F);
    table.push_back({"argmax_" + std::to_string(width), 0, [=](op_bench& bench) {
                       const auto dl = bench.put(logits);
                       const auto y = bench.template room<std::int32_t>(rows);
                       launch(bench.on(), argmax, read<float>{dl.span()},
                              write<std::int32_t>{y.span()}, width);
                       return widened(bench.take(y));
                     }});
    const std::vector<float> temperatures{0.7F, 1.0F, 0.0F};
    const std::vector<float> top_ps{0.9F, 1.0F, 0.5F};
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      table.push_back({"sample_" + std::to_string(width) + "_seed_" + std::to_string(seed), 0,
                       [=](op_bench& bench) {
                         const auto dl = bench.put(logits);
                         const auto dt = bench.put(temperatures);
                         const auto dp = bench.put(top_ps);
                         const auto ds = bench.put(std::vector<std::uint64_t>(rows, seed));
                         const auto dc = bench.put(std::vector<std::uint64_t>{1, 2, 3});
                         const auto y = bench.template room<std::int32_t>(rows);
                         launch(bench.on(), sample, read<float>{dl.span()}, read<float>{dt.span()},
                                read<float>{dp.span()}, read<std::uint64_t>{ds.span()},
                                read<std::uint64_t>{dc.span()}, write<std::int32_t>{y.span()},
                                width);
                         return widened(bench.take(y));
                       }});
    }
  }
}

std::vector<parity_case> all_cases() {
  std::vector<parity_case> table;
  each_pair([&]<class A, class W>(types<A, W>) {
    add_matmuls<A, W>(table);
    add_row_ops<A, W>(table);
    add_attentions<A, W>(table);
  });
  add_elementwise<float>(table);
  add_elementwise<bf16>(table);
  add_choices(table);
  return table;
}

// The largest difference over the largest magnitude; infinite when sizes differ, or a value that
// should be one is none. Two empties are no parity.
double distance(const elements& reference, const elements& got) {
  const double infinite = HUGE_VAL;
  if (reference.empty() || reference.size() != got.size()) return infinite;
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(reference[i] - got[i]);
    if (!(d <= 1e30)) return infinite;
    difference = std::max(difference, d);
    largest = std::max(largest, std::abs(reference[i]));
  }
  return difference == 0 ? 0 : difference / largest;
}

TEST(parity, distance_takes_nothing_for_equal_that_is_not) {
  EXPECT_EQ(distance({1, 2}, {1, 2}), 0);
  EXPECT_EQ(distance({1, -4}, {1, -3}), 0.25);
  EXPECT_EQ(distance({}, {}), HUGE_VAL);
  EXPECT_EQ(distance({1}, {1, 1}), HUGE_VAL);
  EXPECT_EQ(distance({NAN}, {NAN}), HUGE_VAL);
  EXPECT_EQ(distance({1}, {HUGE_VAL}), HUGE_VAL);
}

TEST(parity, every_case_of_the_table_says_something_on_the_cpu) {
  op_bench cpu{"cpu", 1};
  for (const parity_case& c : all_cases()) {
    const elements got = c.run(cpu);
    EXPECT_EQ(distance(got, got), 0) << c.name << " is empty or not finite";
  }
}

TEST(parity, every_cuda_body_agrees_with_the_cpu_body) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench gpu{automatic_device()};
  for (const parity_case& c : all_cases()) {
    EXPECT_LE(distance(c.run(cpu), c.run(gpu)), c.bound) << c.name;
  }
}

}  // namespace
}  // namespace reprise::test
