// A layer norm with a GELU behind it has the bits of the two ops one behind the other, forwards and
// backwards; what those promise of orders and rows is in their own tests.
#include "reprise/ops/layer_norm_gelu.hpp"

#include "reprise/ops/gelu.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_grad.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

constexpr float epsilon = 1e-5F;

struct rules {
  gradient_rule gain = gradient_rule::write;
  gradient_rule bias = gradient_rule::write;
};

struct found {
  floats y, stats, dx, dgain, dbias;
};

struct norm_gelu_case {
  std::size_t width;
  floats x, gain, bias, dy;
  floats old_gain, old_bias;

  norm_gelu_case(std::size_t rows, std::size_t wide, std::uint64_t seed)
      : width{wide},
        x{random_values<float>(rows * wide, seed, 3.0F)},
        gain{random_values<float>(wide, seed + 1, 2.0F)},
        bias{random_values<float>(wide, seed + 2)},
        dy{random_values<float>(rows * wide, seed + 3)},
        old_gain{random_values<float>(wide, seed + 4)},
        old_bias{random_values<float>(wide, seed + 5)} {}

  std::size_t rows() const { return x.size() / width; }
};

std::vector<std::int32_t> word_of(gradient_rule rule) {
  return {static_cast<std::int32_t>(rule)};
}

// As one op, or as two. Gradients over what is there, as `by` says.
found run(op_bench& bench, const norm_gelu_case& at, bool as_one, const rules& by = {},
          place where = place::aligned) {
  const auto width = static_cast<std::int64_t>(at.width);
  const auto x = bench.put(at.x, where);
  const auto gain = bench.put(at.gain, where);
  const auto bias = bench.put(at.bias, where);
  const auto dy = bench.put(at.dy, where);
  const auto y = bench.room<float>(at.x.size(), where);
  const auto stats = bench.room<float>(2 * at.rows());
  const auto dx = bench.room<float>(at.x.size(), where);
  const auto dgain = bench.put(at.old_gain, where);
  const auto dbias = bench.put(at.old_bias, where);
  const auto gain_rule = bench.put(word_of(by.gain));
  const auto bias_rule = bench.put(word_of(by.bias));
  const auto in = [](const auto& from) { return read<float>{from.span()}; };
  const read<std::int32_t> for_gain{gain_rule.span()};
  const read<std::int32_t> for_bias{bias_rule.span()};
  const lending_stream on{bench.on()};
  if (as_one) {
    launch(on, layer_norm_gelu_saving, in(x), in(gain), in(bias), write<float>{y.span()},
           write<float>{stats.span()}, width, epsilon);
    launch(on, layer_norm_gelu_input_grad, in(x), in(gain), in(bias), in(stats), in(dy),
           write<float>{dx.span()}, width);
    launch(on, layer_norm_gelu_weight_grad, in(x), in(gain), in(bias), in(stats), in(dy),
           inout<float>{dgain.span()}, inout<float>{dbias.span()}, for_gain, for_bias, width);
  } else {
    const auto normed = bench.room<float>(at.x.size());
    const auto above = bench.room<float>(at.x.size());
    launch(on, layer_norm_saving, in(x), in(gain), in(bias), write<float>{normed.span()},
           write<float>{stats.span()}, width, epsilon);
    launch(on, gelu, in(normed), write<float>{y.span()});
    launch(on, gelu_grad, in(normed), in(dy), write<float>{above.span()});
    launch(on, layer_norm_input_grad, in(x), in(gain), in(stats), in(above),
           write<float>{dx.span()}, width);
    launch(on, layer_norm_weight_grad, in(x), in(stats), in(above), inout<float>{dgain.span()},
           inout<float>{dbias.span()}, for_gain, for_bias, width);
  }
  return {bench.take(y), bench.take(stats), bench.take(dx), bench.take(dgain), bench.take(dbias)};
}

void expect_equal(const found& got, const found& expected) {
  expect_same_bits(got.y, expected.y);
  expect_same_bits(got.stats, expected.stats);
  expect_same_bits(got.dx, expected.dx);
  expect_same_bits(got.dgain, expected.dgain);
  expect_same_bits(got.dbias, expected.dbias);
}

// Narrow and wide rows, few and many of them: each shape of launch, on both sides of its limits.
const std::vector<std::pair<std::size_t, std::size_t>> sizes{
    {1, 1},    {5, 2},      {3, 31},   {32, 32},   {33, 33},   {45, 70},  {64, 100},
    {32, 256}, {65, 95},    {128, 40}, {129, 40},  {300, 129}, {7, 1000}, {7, 1024},
    {7, 1025}, {300, 1000}, {3, 4096}, {2000, 37}, {9000, 33}};

class layer_norm_gelu_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, layer_norm_gelu_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(layer_norm_gelu_op, has_the_bits_of_the_two_ops) {
  for (const auto& [rows, width] : sizes) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    const norm_gelu_case at{rows, width, 1};
    expect_equal(run(bench(), at, true), run(bench(), at, false));
  }
}

TEST_P(layer_norm_gelu_op, has_them_wherever_its_operands_lie) {
  const norm_gelu_case at{37, 130, 9};
  expect_equal(run(bench(), at, true, {}, place::shifted), run(bench(), at, false));
}

TEST_P(layer_norm_gelu_op, puts_each_gradient_as_its_own_rule_says) {
  const std::vector<gradient_rule> all{gradient_rule::write, gradient_rule::add,
                                       gradient_rule::leave};
  for (const std::size_t rows : {0U, 32U, 70U, 200U}) {
    const norm_gelu_case at{rows, 33, 17};
    for (const gradient_rule gain : all) {
      for (const gradient_rule bias : all) {
        expect_equal(run(bench(), at, true, {gain, bias}), run(bench(), at, false, {gain, bias}));
      }
    }
  }
}

TEST_P(layer_norm_gelu_op, a_row_has_the_bits_it_has_alone) {
  const norm_gelu_case all{40, 256, 23};
  const found together = run(bench(), all, true);
  for (const std::size_t row : {0U, 1U, 17U, 39U}) {
    norm_gelu_case one = all;
    one.x = row_of(all.x, row, 256);
    one.dy = row_of(all.dy, row, 256);
    const found alone = run(bench(), one, true);
    expect_same_bits(alone.y, row_of(together.y, row, 256));
    expect_same_bits(alone.dx, row_of(together.dx, row, 256));
  }
}

TEST_P(layer_norm_gelu_op, may_overwrite_what_it_reads) {
  for (const std::size_t rows : {6U, 3000U}) {
    const norm_gelu_case at{rows, 100, 6};
    const found expected = run(bench(), at, true);
    const auto gain = bench().put(at.gain);
    const auto bias = bench().put(at.bias);
    const auto stats = bench().room<float>(2 * at.rows());
    const auto over = bench().put(at.x);
    launch(bench().on(), layer_norm_gelu_saving, read<float>{over.span()}, read<float>{gain.span()},
           read<float>{bias.span()}, write<float>{over.span()}, write<float>{stats.span()}, 100,
           epsilon);
    expect_same_bits(bench().take(over), expected.y);
    for (const bool over_dy : {true, false}) {
      const auto x = bench().put(at.x);
      const auto dy = bench().put(at.dy);
      const auto& to = over_dy ? dy : x;
      launch(bench().on(), layer_norm_gelu_input_grad, read<float>{x.span()},
             read<float>{gain.span()}, read<float>{bias.span()}, read<float>{stats.span()},
             read<float>{dy.span()}, write<float>{to.span()}, 100);
      expect_same_bits(bench().take(to), expected.dx);
    }
  }
}

TEST(layer_norm_gelu, refuses_sizes_that_do_not_fit) {
  EXPECT_EQ(ops::layer_norm_gelu_rows(8, 4, 4, 8, 4, 4), 2);
  EXPECT_THROW(ops::layer_norm_gelu_rows(8, 4, 4, 8, 4, 3), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_rows(8, 3, 4, 8, 4, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_rows(8, 4, 3, 8, 4, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_rows(8, 4, 4, 4, 4, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_rows(8, 4, 4, 8, 3, 4), usage_error);
  EXPECT_EQ(ops::layer_norm_gelu_input_grad_rows(8, 4, 4, 4, 8, 8, 4), 2);
  EXPECT_THROW(ops::layer_norm_gelu_input_grad_rows(8, 3, 4, 4, 8, 8, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_input_grad_rows(8, 4, 3, 4, 8, 8, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_input_grad_rows(8, 4, 4, 3, 8, 8, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_input_grad_rows(8, 4, 4, 4, 4, 8, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_input_grad_rows(8, 4, 4, 4, 8, 4, 4), usage_error);
  EXPECT_EQ(ops::layer_norm_gelu_weight_grad_rows(8, 4, 4, 4, 8, 4, 4, 1, 1, 4), 2);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 3, 4, 4, 8, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 4, 3, 4, 8, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 4, 4, 3, 8, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 4, 4, 4, 4, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 4, 4, 4, 8, 3, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 4, 4, 4, 8, 4, 3, 1, 1, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 4, 4, 4, 8, 4, 4, 0, 1, 4), usage_error);
  EXPECT_THROW(ops::layer_norm_gelu_weight_grad_rows(8, 4, 4, 4, 8, 4, 4, 1, 2, 4), usage_error);
}

TEST(layer_norm_gelu, the_cuts_between_threads_change_nothing) {
  op_bench bench{"cpu", 1};
  const norm_gelu_case at{101, 250, 10};
  const found expected = run(bench, at, true);
  cpu_call call{{}, odd_pieces()};
  const auto in = [](const floats& from) { return read<float>{view{from.data(), from.size()}}; };
  const auto to = [](floats& into) { return view{into.data(), into.size()}; };
  found got{floats(at.x.size()), floats(2 * at.rows()), floats(at.x.size()), floats(250),
            floats(250)};
  ops::layer_norm_gelu_saving_cpu(call, in(at.x), in(at.gain), in(at.bias), write<float>{to(got.y)},
                                  write<float>{to(got.stats)}, 250, epsilon);
  ops::layer_norm_gelu_input_grad_cpu(call, in(at.x), in(at.gain), in(at.bias), in(got.stats),
                                      in(at.dy), write<float>{to(got.dx)}, 250);
  const std::vector<std::int32_t> writes = word_of(gradient_rule::write);
  const read<std::int32_t> rule{view{writes.data(), writes.size()}};
  ops::layer_norm_gelu_weight_grad_cpu(call, in(at.x), in(at.gain), in(at.bias), in(got.stats),
                                       in(at.dy), inout<float>{to(got.dgain)},
                                       inout<float>{to(got.dbias)}, rule, rule, 250);
  expect_equal(got, expected);
}

TEST(layer_norm_gelu, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& [rows, width] : sizes) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    const norm_gelu_case at{rows, width, 11};
    expect_equal(run(cuda, at, true), run(cpu, at, true));
  }
}

}  // namespace
}  // namespace reprise::test
