#include "reprise/ops/math.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace reprise {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

double ulps(float got, double want) {
  const int exponent = std::max(std::ilogb(want), -126);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 23);
}

// Every 97th float between the two, in bits.
template <class F>
void each_float(float from, float to, F&& f) {
  const auto last = std::bit_cast<std::uint32_t>(to);
  for (auto bits = std::bit_cast<std::uint32_t>(from); bits <= last; bits += 97) {
    f(std::bit_cast<float>(bits));
  }
}

template <class V>
[[gnu::always_inline]] inline void exp_of(const float* x, float* y) {
  V v;
  std::memcpy(&v, x, sizeof v);
  v = math::exp<V>(v);
  std::memcpy(y, &v, sizeof v);
}

template <class V>
void exp_here(const float* x, float* y) {
  exp_of<V>(x, y);
}
#if defined(__x86_64__)
template <class V>
[[gnu::target("avx2")]] void exp_avx2(const float* x, float* y) {
  exp_of<V>(x, y);
}
template <class V>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void exp_avx512(const float* x, float* y) {
  exp_of<V>(x, y);
}
#endif

struct vector_rung {
  const char* name;
  std::size_t lanes;
  void (*exp)(const float*, float*);
};

std::vector<vector_rung> vector_rungs() {
  std::vector<vector_rung> rungs = {{"generic of 4", 4, exp_here<math::f32x4>},
                                    {"generic of 8", 8, exp_here<math::f32x8>},
                                    {"generic of 16", 16, exp_here<math::f32x16>}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    rungs.push_back({"avx2 of 8", 8, exp_avx2<math::f32x8>});
    rungs.push_back({"avx2 of 16", 16, exp_avx2<math::f32x16>});
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    rungs.push_back({"avx512 of 16", 16, exp_avx512<math::f32x16>});
  }
#endif
  return rungs;
}

TEST(exp, is_within_two_ulp_where_results_are_normal_numbers) {
  double worst = 0;
  const auto check = [&](float x) {
    worst = std::max(worst, ulps(math::exp(x), std::exp(double{x})));
  };
  each_float(1e-10f, 88.72283f, check);
  each_float(1e-10f, 87.33654f, [&](float x) { check(-x); });
  EXPECT_LE(worst, 2.0);
}

TEST(exp, ends_as_it_should) {
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::exp(-0.0f), 1.0f);
  EXPECT_EQ(math::exp(1e-30f), 1.0f);
  EXPECT_EQ(math::exp(-infinity), 0.0f);
  EXPECT_FALSE(std::signbit(math::exp(-infinity)));
  EXPECT_EQ(math::exp(infinity), infinity);
  EXPECT_EQ(math::exp(88.8f), infinity);
  EXPECT_EQ(math::exp(std::numeric_limits<float>::max()), infinity);
  EXPECT_EQ(math::exp(std::numeric_limits<float>::lowest()), 0.0f);
  EXPECT_EQ(math::exp(-87.34f), 0.0f);
  EXPECT_GE(math::exp(-87.33654f), std::numeric_limits<float>::min());
  EXPECT_LT(math::exp(88.72283f), infinity);
  const float nan = std::bit_cast<float>(0xffc01234u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(math::exp(nan)), 0xffc01234u);
}

TEST(exp, each_lane_of_every_vector_has_the_bits_of_the_scalar) {
  std::vector<float> xs;
  each_float(1e-10f, 100.0f, [&](float x) {
    xs.push_back(x);
    xs.push_back(-x);
  });
  for (const float x : {0.0f, -0.0f, infinity, -infinity, std::nanf("7"), 88.72283f, 88.72284f,
                        -87.33654f, -87.33655f, 3e38f, -3e38f, 1e-40f}) {
    xs.push_back(x);
    xs.push_back(-x);
  }
  while (xs.size() % 16 != 0) xs.push_back(1.0f);
  std::vector<float> want(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) want[i] = math::exp(xs[i]);
  std::vector<float> got(xs.size());
  for (const vector_rung& rung : vector_rungs()) {
    for (std::size_t i = 0; i < xs.size(); i += rung.lanes) rung.exp(&xs[i], &got[i]);
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << rung.name;
  }
}

TEST(log, is_within_one_ulp_of_every_positive_number) {
  double worst = 0;
  const auto check = [&](float x) {
    if (x != 1.0f) worst = std::max(worst, ulps(math::log(x), std::log(double{x})));
  };
  each_float(std::numeric_limits<float>::denorm_min(), 0.5f, check);
  each_float(0.5f, 2.0f, check);
  each_float(2.0f, std::numeric_limits<float>::max(), check);
  for (float x = 0.999f; x < 1.001f; x = std::nextafter(x, 2.0f)) check(x);
  EXPECT_LE(worst, 1.0);
}

TEST(log, ends_as_it_should) {
  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_FALSE(std::signbit(math::log(1.0f)));
  EXPECT_EQ(math::log(0.0f), -infinity);
  EXPECT_EQ(math::log(-0.0f), -infinity);
  EXPECT_EQ(math::log(infinity), infinity);
  for (const float x : {-1e-45f, -1.0f, -infinity}) EXPECT_TRUE(std::isnan(math::log(x))) << x;
  const float nan = std::bit_cast<float>(0xffc01234u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(math::log(nan)), 0xffc01234u);
}

TEST(sincos, is_within_a_rounding_for_angles_up_to_a_million) {
  double worst = 0;
  each_float(1e-10f, 1e6f, [&](float x) {
    for (const float angle : {x, -x}) {
      float s;
      float c;
      math::sincos(angle, s, c);
      worst = std::max(worst, std::abs(s - std::sin(double{angle})));
      worst = std::max(worst, std::abs(c - std::cos(double{angle})));
    }
  });
  EXPECT_LT(worst, 3.1e-8);
}

TEST(sincos, of_zero_is_exact_and_of_no_number_is_none) {
  float s;
  float c;
  math::sincos(0.0f, s, c);
  EXPECT_EQ(s, 0.0f);
  EXPECT_EQ(c, 1.0f);
  for (const float angle : {infinity, -infinity, std::nanf("")}) {
    math::sincos(angle, s, c);
    EXPECT_TRUE(std::isnan(s));
    EXPECT_TRUE(std::isnan(c));
  }
}

}  // namespace
}  // namespace reprise
