// What a memory layer's product gives its parts, against double arithmetic, and back.
#include "reprise/sdm/projection.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

TEST(sdm_gates, have_their_digits_at_both_ends) {
  for (float w = -100.0F; w <= 87.0F; w += 0.37F) {  // beyond, e^-w is 0, as math::exp has it
    const double exact = -std::log1p(std::exp(-static_cast<double>(w)));
    EXPECT_NEAR(sdm::log_sigmoid(w), exact, 2e-7 * std::abs(exact)) << w;
  }
  // A decay that keeps nearly all still has a slope to come back by.
  for (double g = -20; g < -1e-9; g *= 0.7) {
    const auto near = static_cast<float>(g);
    EXPECT_NEAR(sdm::lost_by(near), -std::expm1(static_cast<double>(near)),
                2e-5 * -std::expm1(static_cast<double>(near)))
        << g;
  }
  EXPECT_EQ(sdm::lost_by(0.0F), 0.0F);
}

TEST(sdm_projection, gives_each_part_its_columns_and_takes_its_gradient_back) {
  constexpr std::int64_t rows = 3, width = 5, key_width = 2;
  constexpr std::int64_t columns = sdm::projected(width, key_width);
  const auto z = random_values<float>(rows * columns, 1, 4.0F);
  std::vector<float> v(rows * width), first(2 * rows * key_width), second(first.size());
  std::vector<float> beta(rows), g(rows), dz(z.size(), 9.0F);
  const auto in = [](const std::vector<float>& from) {
    return read<float>{view<const float>{from.data(), from.size()}};
  };
  const auto to = [](std::vector<float>& at) {
    return write<float>{view<float>{at.data(), at.size()}};
  };
  cpu_call call{{}, {}};
  sdm::split_cpu(call, in(z), to(v), to(first), to(second), to(beta), to(g), width, key_width,
                 1.5F);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto of = [&](std::int64_t column) {
      return z[static_cast<std::size_t>(row * columns + column)];
    };
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    for (std::int64_t j = 0; j < width; ++j) EXPECT_EQ(v[at(row * width + j)], of(j));
    for (std::int64_t j = 0; j < key_width; ++j) {
      EXPECT_EQ(first[at(row * key_width + j)], of(width + j));
      EXPECT_EQ(second[at(row * key_width + j)], of(width + key_width + j));
      EXPECT_EQ(first[at((rows + row) * key_width + j)], of(width + 2 * key_width + j));
      EXPECT_EQ(second[at((rows + row) * key_width + j)], of(width + 3 * key_width + j));
    }
    const double strength = 1 / (1 + std::exp(-static_cast<double>(of(columns - 2))));
    EXPECT_NEAR(beta[at(row)], strength, 2e-7);
    EXPECT_NEAR(g[at(row)], -std::log1p(std::exp(-static_cast<double>(of(columns - 1)) - 1.5)),
                1e-6);
  }
  const auto dbeta = random_values<float>(rows, 2);
  const auto dg = random_values<float>(rows, 3);
  sdm::join_cpu(call, in(v), in(first), in(second), in(dbeta), in(dg), in(beta), in(g), to(dz),
                width, key_width);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t j = 0; j < columns - 2; ++j) {  // each came from there
      const auto i = static_cast<std::size_t>(row * columns + j);
      EXPECT_EQ(dz[i], z[i]);
    }
    const auto r = static_cast<std::size_t>(row);
    const auto end = static_cast<std::size_t>((row + 1) * columns);
    const double b = static_cast<double>(beta[r]);
    EXPECT_NEAR(dz[end - 2], static_cast<double>(dbeta[r]) * b * (1 - b), 1e-6);
    EXPECT_NEAR(dz[end - 1], static_cast<double>(dg[r]) * -std::expm1(static_cast<double>(g[r])),
                1e-6);
  }
}

}  // namespace
}  // namespace reprise::test
