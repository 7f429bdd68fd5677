#include "reprise/ops/embedding_grad.hpp"

#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using ids = std::vector<std::int32_t>;

std::vector<std::int32_t> word(gradient_rule rule) {
  return {static_cast<std::int32_t>(rule)};
}

floats after(op_bench& bench, const ids& tokens, const floats& dy, const floats& before,
             std::size_t width, gradient_rule by, place where = place::aligned) {
  const auto from = bench.put(tokens, where);
  const auto above = bench.put(dy, where);
  const auto table = bench.put(before, where);
  const auto rule = bench.put(word(by));
  launch(bench.on(), embedding_grad, read<std::int32_t>{from.span()}, read<float>{above.span()},
         inout<float>{table.span()}, read<std::int32_t>{rule.span()},
         static_cast<std::int64_t>(width));
  return bench.take(table);
}

// What was there would spoil a sum that is read.
floats written(op_bench& bench, const ids& tokens, const floats& dy, std::size_t vocabulary,
               std::size_t width, place where = place::aligned) {
  return after(bench, tokens, dy, floats(vocabulary * width, std::nanf("")), width,
               gradient_rule::write, where);
}

// A fifth of them is token 1, as spaces are of a text; some are no tokens.
ids skewed_tokens(std::size_t count, std::size_t vocabulary, std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  ids tokens(count);
  for (std::int32_t& token : tokens) {
    token = draw() % 5 == 0 ? 1 : static_cast<std::int32_t>(draw() % (vocabulary + 2)) - 1;
  }
  return tokens;
}

// In parts of 64 rows of the token, and the parts in their order.
floats in_parts(const ids& tokens, const floats& dy, std::size_t vocabulary, std::size_t width) {
  floats table;
  for (std::size_t v = 0; v < vocabulary; ++v) {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] == static_cast<std::int32_t>(v)) rows.push_back(i);
    }
    for (std::size_t j = 0; j < width; ++j) {
      float total = 0;
      for (std::size_t first = 0; first < rows.size(); first += 64) {
        float sum = 0;
        for (std::size_t l = first; l < std::min(first + 64, rows.size()); ++l) {
          sum += dy[rows[l] * width + j];
        }
        total += sum;
      }
      table.push_back(total);
    }
  }
  return table;
}

class embedding_grad_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, embedding_grad_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(embedding_grad_op, adds_up_the_rows_of_each_token) {
  const std::size_t width = 5;
  const ids tokens{2, 0, 2, 3, 0, 2};
  const floats dy = random_values<float>(tokens.size() * width, 1);
  std::vector<double> want(4 * width);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      want[static_cast<std::size_t>(tokens[i]) * width + j] +=
          static_cast<double>(dy[i * width + j]);
    }
  }
  expect_near(written(bench(), tokens, dy, 4, width), want, 1e-6);
}

TEST_P(embedding_grad_op, is_the_gradient_of_central_differences) {
  const std::size_t width = 3;
  const ids tokens{1, 4, -1, 1, 0, 5, 1};
  const floats dy = random_values<float>(tokens.size() * width, 2);
  const auto loss = [&](const std::vector<double>& table) {
    double sum = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] < 0 || tokens[i] >= 5) continue;  // embedding gives zeros
      for (std::size_t j = 0; j < width; ++j) {
        sum += static_cast<double>(dy[i * width + j]) *
               table[static_cast<std::size_t>(tokens[i]) * width + j];
      }
    }
    return sum;
  };
  expect_near(written(bench(), tokens, dy, 5, width),
              central_differences(loss, std::vector<double>(5 * width, 0.5)), 1e-6);
}

struct shape {
  std::size_t rows, vocabulary, width;
};

TEST_P(embedding_grad_op, adds_in_the_order_that_is_documented) {
  for (const auto& [rows, vocabulary, width] : std::vector<shape>{{1, 1, 1},
                                                                  {63, 2, 7},
                                                                  {64, 1, 8},
                                                                  {65, 1, 33},
                                                                  {130, 3, 256},
                                                                  {1000, 3, 264},
                                                                  {1025, 1, 65},
                                                                  {4096, 2, 8},
                                                                  {4097, 2, 9},
                                                                  {8200, 1, 16},
                                                                  {9000, 256, 24},
                                                                  {5000, 20, 250},
                                                                  {6144, 1, 5},
                                                                  {5120, 1, 8}}) {
    SCOPED_TRACE(testing::Message() << rows << " of " << vocabulary << " x " << width);
    const ids tokens = vocabulary == 1 ? ids(rows, 0) : skewed_tokens(rows, vocabulary, rows);
    const floats dy = random_values<float>(rows * width, 3);
    const floats want = in_parts(tokens, dy, vocabulary, width);
    expect_same_bits(written(bench(), tokens, dy, vocabulary, width), want);
    expect_same_bits(written(bench(), tokens, dy, vocabulary, width, place::shifted), want);
  }
}

TEST_P(embedding_grad_op, of_a_token_depends_on_its_own_rows_alone) {
  const std::size_t width = 40;
  const ids tokens = skewed_tokens(700, 6, 4);
  const floats dy = random_values<float>(tokens.size() * width, 5);
  const floats together = written(bench(), tokens, dy, 6, width);
  for (const std::int32_t token : {0, 1, 5}) {
    ids own;
    floats rows;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] != token) continue;
      own.push_back(token);
      append(rows, row_of(dy, i, width));
    }
    const auto at = static_cast<std::size_t>(token);
    expect_same_bits(row_of(written(bench(), own, rows, 6, width), at, width),
                     row_of(together, at, width));
  }
}

TEST_P(embedding_grad_op, leaves_out_rows_of_no_token) {
  const std::int32_t far = std::numeric_limits<std::int32_t>::max();
  const ids tokens{-1, 2, 3, far, -far - 1, 256};
  floats dy(tokens.size() * 2, std::nanf(""));
  dy[2] = 3.0F;
  dy[3] = 4.0F;
  expect_same_bits(written(bench(), tokens, dy, 3, 2), {0, 0, 0, 0, 3, 4});
}

TEST_P(embedding_grad_op, of_a_token_that_does_not_occur_is_zeros) {
  const floats got = written(bench(), {1, 1}, {1, 2, 3, 4}, 3, 2);
  expect_same_bits(got, {0, 0, 4, 6, 0, 0});
  expect_same_bits(written(bench(), {}, {}, 2, 3), floats(6, 0.0F));
}

TEST_P(embedding_grad_op, follows_its_rule) {
  const std::size_t width = 33;
  const ids tokens = skewed_tokens(300, 5, 6);
  const floats dy = random_values<float>(tokens.size() * width, 7);
  const floats sums = written(bench(), tokens, dy, 5, width);
  const floats before = random_values<float>(5 * width, 8);
  floats added;
  for (std::size_t i = 0; i < before.size(); ++i) added.push_back(before[i] + sums[i]);
  const auto by = [&](gradient_rule rule) {
    return after(bench(), tokens, dy, before, width, rule);
  };
  expect_same_bits(by(gradient_rule::write), sums);
  expect_same_bits(by(gradient_rule::add), added);
  expect_same_bits(by(gradient_rule::leave), before);
  expect_same_bits(by(gradient_rule{7}), before);  // no rule: left alone
}

TEST_P(embedding_grad_op, refuses_sizes_that_do_not_fit) {
  const auto tokens = bench().put(ids(4));
  const auto dy = bench().put(floats(16));
  const auto table = bench().put(floats(12));
  const auto rule = bench().put(ids(2));
  const auto run = [&](std::size_t in_dy, std::size_t in_table, std::size_t rules,
                       std::int64_t width) {
    launch(bench().on(), embedding_grad, read<std::int32_t>{tokens.span()},
           read<float>{dy.span().subview(0, in_dy)},
           inout<float>{table.span().subview(0, in_table)},
           read<std::int32_t>{rule.span().subview(0, rules)}, width);
  };
  EXPECT_NO_THROW(run(16, 12, 1, 4));
  EXPECT_THROW(run(15, 12, 1, 4), usage_error);
  EXPECT_THROW(run(16, 11, 1, 4), usage_error);
  EXPECT_THROW(run(16, 12, 2, 4), usage_error);
  EXPECT_THROW(run(16, 12, 0, 4), usage_error);
  EXPECT_THROW(run(16, 12, 1, 0), usage_error);
}

TEST(embedding_grad, of_more_columns_than_a_grid_of_blocks_covers_is_refused) {
  constexpr std::int64_t most = 16'776'960;  // 65,535 blocks of 256
  constexpr auto columns = static_cast<std::size_t>(most);
  EXPECT_EQ(ops::embedding_grad_vocabulary(1, columns, 2 * columns, 1, most), 2);
  try {
    ops::embedding_grad_vocabulary(1, columns + 1, columns + 1, 1, most + 1);
    FAIL() << "taken";
  } catch (const usage_error& refused) {
    EXPECT_STREQ(refused.what(),
                 "embedding_grad: the width is 16776961, more than a grid of blocks covers; give "
                 "16776960 at most");
  }
}

TEST(embedding_grad, the_cuts_between_threads_change_nothing) {
  const std::size_t width = 1000;
  const ids tokens = skewed_tokens(400, 30, 9);
  const floats dy = random_values<float>(tokens.size() * width, 10);
  floats table(30 * width);
  const ids rule = word(gradient_rule::write);
  cpu_call call{{}, odd_pieces()};
  ops::embedding_grad_cpu(
      call, read<std::int32_t>{view{tokens.data(), tokens.size()}},
      read<float>{view{dy.data(), dy.size()}}, inout<float>{view{table.data(), table.size()}},
      read<std::int32_t>{view{rule.data(), rule.size()}}, static_cast<std::int64_t>(width));
  expect_same_bits(table, in_parts(tokens, dy, 30, width));
}

TEST(embedding_grad, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& [rows, vocabulary, width] :
       std::vector<shape>{{8192, 256, 768}, {20'000, 256, 33}, {10'241, 1, 256}, {67, 1000, 40}}) {
    const ids tokens = vocabulary == 1 ? ids(rows, 0) : skewed_tokens(rows, vocabulary, 11);
    const floats dy = random_values<float>(rows * width, 12);
    expect_same_bits(written(cuda, tokens, dy, vocabulary, width),
                     written(cpu, tokens, dy, vocabulary, width));
  }
}

}  // namespace
}  // namespace reprise::test
