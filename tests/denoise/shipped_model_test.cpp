// The model that ships with Reprise: its images are of their classes, as far as a few sums can say,
// and its bits on a CPU are always the same.
#include <bit>
#include <cmath>

#include "tests/denoise/support.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

constexpr std::int64_t side = 28;
constexpr std::int32_t trouser = 1;
constexpr std::int32_t pullover = 2;
constexpr std::int32_t sneaker = 7;

std::vector<float> images_of(std::int32_t of) {
  denoise::denoise_options options;
  options.model = test::shipped_denoiser();
  options.requests = {test::asked(12, {of, of, of, of}, 11)};
  options.verify = false;
  return denoise::run_denoise(test::open_for_test("cpu"), options).images.front();
}

// How bright the pixels are of which `in(row, column)` says so: 0 black, 1 white.
template <class In>
double brightness(const std::vector<float>& images, In&& in) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto pixel = static_cast<std::int64_t>(i) % (side * side);
    if (!in(pixel / side, pixel % side)) continue;
    sum += (static_cast<double>(images[i]) + 1) / 2;
    ++count;
  }
  return sum / count;
}

bool at_the_sides(std::int64_t, std::int64_t column) {
  return column < 7 || column >= 21;
}

bool at_the_top(std::int64_t row, std::int64_t) {
  return row < 7;
}

TEST(the_shipped_model, gives_finite_images_between_black_and_white) {
  for (const float value : images_of(pullover)) {
    ASSERT_TRUE(std::isfinite(value));
    ASSERT_LT(std::abs(value), 2.0F);
  }
}

// Every rung of every processor sums in one order. Another model, or another order, changes this.
TEST(the_shipped_model, has_the_same_bits_on_every_cpu) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const float value : images_of(trouser)) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001b3U;
  }
  EXPECT_EQ(hash, 0x62e97688d3538cfaU);
}

TEST(the_shipped_model, knows_its_classes) {
  const auto trousers = images_of(trouser);
  const auto pullovers = images_of(pullover);
  const auto sneakers = images_of(sneaker);
  EXPECT_LT(brightness(trousers, at_the_sides), 0.15) << "trousers are narrow";
  EXPECT_GT(brightness(pullovers, at_the_sides), 0.18) << "pullovers have sleeves";
  EXPECT_LT(brightness(sneakers, at_the_top), 0.05) << "sneakers are low";
  EXPECT_GT(brightness(trousers, at_the_top), 0.15);
}

}  // namespace
}  // namespace reprise
