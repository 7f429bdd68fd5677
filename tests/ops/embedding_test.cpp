#include "reprise/ops/embedding.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

struct shape {
  std::size_t rows, vocabulary, width;
};
const std::vector<shape> shapes = {{0, 5, 8},    {1, 1, 1},     {3, 7, 9},     {64, 100, 64},
                                   {5, 11, 100}, {2, 30, 2048}, {3, 20, 2056}, {40, 17, 4100}};

std::vector<std::int32_t> random_tokens(std::size_t count, std::size_t vocabulary,
                                        std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(draw() % vocabulary);
  return tokens;
}

template <class A, class W>
std::vector<A> embedded(op_bench& bench, const std::vector<std::int32_t>& tokens,
                        const std::vector<W>& table, std::size_t width,
                        place where = place::aligned) {
  const auto ids = bench.put(tokens);
  const auto from = bench.put(table, where);
  const auto to = bench.template room<A>(tokens.size() * width, where);
  launch(bench.on(), embedding<A, W>, read<std::int32_t>{ids.span()}, read<W>{from.span()},
         write<A>{to.span()}, static_cast<std::int64_t>(width));
  return bench.take(to);
}

template <class A, class W>
std::vector<A> reference(const std::vector<std::int32_t>& tokens, const std::vector<W>& table,
                         std::size_t width) {
  std::vector<A> out;
  for (const std::int32_t token : tokens) {
    for (const W value : row_of(table, static_cast<std::size_t>(token), width)) {
      out.push_back(narrow<A>(widen(value)));
    }
  }
  return out;
}

class embedding_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, embedding_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(embedding_op, copies_the_row_of_each_token) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.rows << " of " << s.vocabulary << " x " << s.width);
      const auto tokens = random_tokens(s.rows, s.vocabulary, 1);
      const auto table = random_values<W>(s.vocabulary * s.width, 2);
      const auto want = reference<A>(tokens, table, s.width);
      expect_same_bits(embedded<A>(bench(), tokens, table, s.width), want);
      expect_same_bits(embedded<A>(bench(), tokens, table, s.width, place::shifted), want);
    }
  });
}

TEST_P(embedding_op, a_token_outside_the_table_gives_a_row_of_zeros) {
  each_pair([&]<class A, class W>(types<A, W>) {
    const std::size_t width = 24;
    const auto table = random_values<W>(10 * width, 3);
    const std::int32_t far = std::numeric_limits<std::int32_t>::max();
    const auto out = embedded<A>(bench(), {9, -1, 10, far, -far - 1, 0}, table, width);
    for (const std::size_t row : {1, 2, 3, 4}) {
      expect_same_bits(row_of(out, row, width), std::vector<A>(width, narrow<A>(0.0f)));
    }
    expect_same_bits(row_of(out, 0, width), reference<A>({9}, table, width));
    expect_same_bits(row_of(out, 5, width), reference<A>({0}, table, width));
  });
}

TEST_P(embedding_op, refuses_sizes_that_do_not_fit) {
  const auto tokens = bench().put(std::vector<std::int32_t>(4));
  const auto table = bench().put(random_values<float>(12, 4));
  const auto out = bench().room<float>(16);
  const auto run = [&](std::size_t in_table, std::size_t in_out, std::int64_t width) {
    launch(bench().on(), embedding<float, float>, read<std::int32_t>{tokens.span()},
           read<float>{table.span().subview(0, in_table)},
           write<float>{out.span().subview(0, in_out)}, width);
  };
  EXPECT_NO_THROW(run(12, 16, 4));
  EXPECT_THROW(run(11, 16, 4), usage_error);
  EXPECT_THROW(run(12, 15, 4), usage_error);
  EXPECT_THROW(run(12, 16, 0), usage_error);
}

TEST(embedding, the_cuts_between_threads_change_nothing) {
  const std::size_t width = 5000;
  const auto tokens = random_tokens(100, 30, 5);
  const auto table = random_values<bf16>(30 * width, 6);
  std::vector<float> out(tokens.size() * width);
  cpu_call call{{}, odd_pieces()};
  ops::embedding_cpu(call, read<std::int32_t>{view{tokens.data(), tokens.size()}},
                     read<bf16>{view{table.data(), table.size()}},
                     write<float>{view{out.data(), out.size()}}, static_cast<std::int64_t>(width));
  expect_same_bits(out, reference<float>(tokens, table, width));
}

}  // namespace
}  // namespace reprise::test
