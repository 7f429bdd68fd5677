// sdm_products: the dot products of a chunk's rows with its deltas.
#include "tests/sdm/gradient_calls.hpp"

namespace reprise::test {
namespace {

// <scale_a * a, scale_b * b> in the order that is documented: parts of 64 columns.
template <class X>
X in_parts(const X* a, X scale_a, const X* b, X scale_b, std::int64_t width) {
  X total = 0;
  for (std::int64_t begin = 0; begin < width; begin += 64) {
    X sum = 0;
    for (std::int64_t j = begin; j < std::min(begin + 64, width); ++j) {
      const X left = scale_a * a[j];
      const X right = scale_b * b[j];
      sum += left * right;
    }
    total += sum;
  }
  return total;
}

template <class X>
product_tables<X> documented_products(const memory_call& call, const memory_run& run) {
  const sdm_sizes& s = call.sizes;
  const auto dy = numbers_as<X>(call.dy);
  const auto m = numbers_as<X>(run.m);
  const auto errors = numbers_as<X>(run.errors);
  const auto beta = numbers_as<X>(call.beta);
  product_tables<X> made;
  for (std::int64_t p = 0; p < s.streams; ++p) {
    for (std::int64_t t = 0; t < s.chunks() * s.chunk; ++t) {
      for (std::int64_t at = 0; at < s.chunk; ++at) {
        const std::int64_t earlier = t / s.chunk * s.chunk + at;
        const auto token = static_cast<std::size_t>(p * s.tokens + t);
        const auto other = static_cast<std::size_t>(p * s.tokens + earlier);
        const auto row = [&](const std::vector<X>& rows, std::size_t which) {
          return rows.data() + which * static_cast<std::size_t>(s.width);
        };
        const bool reads = t < s.tokens && earlier <= t;
        const bool recalls = t < s.tokens && earlier < t;
        made.of_readings.push_back(
            reads ? in_parts<X>(row(dy, token), 1, row(errors, other), beta[other], s.width) : 0);
        made.of_errors.push_back(recalls ? in_parts<X>(row(m, token), beta[token],
                                                       row(errors, other), beta[other], s.width)
                                         : 0);
      }
    }
  }
  return made;
}

// Chunks that end early, widths beside whole parts, more and fewer than a tile of tokens.
const std::vector<sdm_sizes> product_sizes{
    {1, 4, 1, 3, 1, 1, 1, 1},      {2, 9, 5, 70, 2, 2, 1, 33},   {1, 4, 63, 31, 1, 1, 1, 32},
    {1, 9, 64, 96, 2, 2, 1, 96},   {3, 4, 65, 20, 1, 1, 1, 7},   {1, 9, 130, 150, 2, 2, 2, 130},
    {1, 4, 300, 40, 1, 1, 1, 100}, {1, 4, 768, 128, 1, 1, 1, 64}};

class sdm_products_op : public op_on_device {
 protected:
  bool on_the_cpu() const { return GetParam() == "cpu"; }  // where alone there is f64
};
INSTANTIATE_TEST_SUITE_P(devices, sdm_products_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sdm_products_op, products_have_the_bits_of_the_order_that_is_documented) {
  for (const sdm_sizes& sizes : product_sizes) {
    SCOPED_TRACE(testing::Message() << sizes.chunk << " tokens of " << sizes.width);
    const memory_call call = random_call(sizes, {.seed = 3});
    const memory_run run = in_doubles(call);
    const auto want = documented_products<float>(call, run);
    for (const place where : {place::aligned, place::shifted}) {
      const auto got = products_on<float>(bench(), call, run, where);
      expect_same_bits(got.of_readings, want.of_readings);
      expect_same_bits(got.of_errors, want.of_errors);
    }
    if (!on_the_cpu()) continue;
    const auto wide_want = documented_products<double>(call, run);
    const auto got = products_on<double>(bench(), call, run);
    expect_same_bits(got.of_readings, wide_want.of_readings);
    expect_same_bits(got.of_errors, wide_want.of_errors);
  }
}

// A NaN or an infinity in the memory of one token is of no concern to the zeros.
TEST_P(sdm_products_op, what_comes_later_and_what_is_no_token_gives_zeros_whatever_it_is) {
  memory_call call = random_call({1, 9, 40, 45, 1, 1, 1, 40});
  memory_run run = in_doubles(call);
  for (std::vector<double>* rows : {&call.dy, &run.m, &run.errors}) {
    std::fill(rows->end() - 40, rows->end(), std::numeric_limits<double>::infinity());
  }
  const auto got = products_on<float>(bench(), call, run);
  for (std::size_t t = 0; t < 80; ++t) {
    for (std::size_t s = 0; s < 40; ++s) {
      const bool token = t < 45;
      const std::size_t pair = t * 40 + s;
      if (!token || s > t % 40) {
        EXPECT_EQ(got.of_readings[pair], 0.0F) << t << ", " << s;
      }
      if (!token || s >= t % 40) {
        EXPECT_EQ(got.of_errors[pair], 0.0F) << t << ", " << s;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::test
