// A call of product_key_top and one of product_key_grad, for the tests of both.
#pragma once

#include <limits>

#include "reprise/sdm/product_keys.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {

using floats = std::vector<float>;
using indices = std::vector<std::int32_t>;

inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float inf = std::numeric_limits<float>::infinity();

struct keys_case {
  std::size_t n, k, tokens;
  floats first, second;

  std::size_t rows() const { return first.size() / n; }
};

inline keys_case random_case(std::size_t n, std::size_t k, std::size_t rows, std::uint64_t seed,
                             std::size_t streams = 1) {
  return {n, k, rows / streams, random_values<float>(rows * n, seed, 3.0F),
          random_values<float>(rows * n, seed + 1, 3.0F)};
}

// Scores out of these alone, so that many are equal.
inline keys_case case_of_few(const floats& values, std::size_t n, std::size_t k, std::size_t rows,
                             std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  keys_case at{n, k, rows, floats(rows * n), floats(rows * n)};
  for (float& one : at.first) one = values[draw() % values.size()];
  for (float& one : at.second) one = values[draw() % values.size()];
  return at;
}

struct choice {
  indices idx;
  floats val;
};

inline choice chosen(op_bench& bench, const keys_case& at, place where = place::aligned) {
  const auto first = bench.put(at.first, where);
  const auto second = bench.put(at.second, where);
  const auto idx = bench.room<std::int32_t>(at.rows() * at.k, where);
  const auto val = bench.room<float>(at.rows() * at.k, where);
  launch(bench.on(), product_key_top, read<float>{first.span()}, read<float>{second.span()},
         write<std::int32_t>{idx.span()}, write<float>{val.span()}, static_cast<std::int64_t>(at.n),
         static_cast<std::int64_t>(at.k), static_cast<std::int64_t>(at.tokens));
  return {bench.take(idx), bench.take(val)};
}

struct half_grads {
  floats first, second;
};

inline half_grads grads(op_bench& bench, std::size_t n, std::size_t k, const choice& of,
                        const floats& dval, place where = place::aligned) {
  const auto idx = bench.put(of.idx, where);
  const auto val = bench.put(of.val, where);
  const auto above = bench.put(dval, where);
  const auto first = bench.room<float>(of.idx.size() / k * n, where);
  const auto second = bench.room<float>(of.idx.size() / k * n, where);
  launch(bench.on(), product_key_grad, read<std::int32_t>{idx.span()}, read<float>{val.span()},
         read<float>{above.span()}, write<float>{first.span()}, write<float>{second.span()},
         static_cast<std::int64_t>(n), static_cast<std::int64_t>(k));
  return {bench.take(first), bench.take(second)};
}

}  // namespace reprise::test
