// Eight requests of other step counts and sizes in turns: recorded, with recordings dropped and
// weights moved at any moment, or not recorded at all, under any order of works that a GPU may
// choose, the images are those of each request alone.
//
// REPRISE_SIM_SEEDS says how many seeds run; by default a few.
#include <cstdlib>
#include <random>
#include <string>

#include "tests/denoise/support.hpp"

namespace reprise {
namespace {

using denoise::denoise_options;
using denoise::denoise_report;
using test::asked;

std::uint64_t seeds_to_run() {
  const char* const wanted = std::getenv("REPRISE_SIM_SEEDS");
  return wanted == nullptr ? 6 : std::strtoull(wanted, nullptr, 10);
}

denoise_options eight_requests(const std::filesystem::path& model) {
  denoise_options options;
  options.model = model;
  options.verify = false;
  options.requests = {asked(3, {0}, 1),          asked(2, {1, 2}, 2), asked(4, {0, 1, 2}, 3),
                      asked(2, {2, 2}, 4),       asked(1, {0}, 5),    asked(3, {1, 1, 0, 3}, 6),
                      asked(2, {0, 2, 1, 1}, 7), asked(3, {2}, 8)};
  options.requests[3].stochastic = true;
  return options;
}

// What this seed does to the recordings; the counts are planned for it.
denoise_options disturbed(denoise_options options, std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  options.weight_moves = static_cast<std::int64_t>(draw() % 3);
  for (std::uint64_t i = draw() % 4; i != 0; --i) {
    options.sleeps.push_back(1 + static_cast<std::int64_t>(draw() % 39));
  }
  return options;
}

// Each alone, in a plain run of its own on the cpu, whose bits the simulated GPU has too.
test::images_of_requests alone_on(device_ref device, const denoise_options& options) {
  test::images_of_requests all;
  for (const denoise::image_request& each : options.requests) {
    denoise_options one = options;
    one.requests = {each};
    one.eager = true;
    all.push_back(denoise::run_denoise(device, one).images.front());
  }
  return all;
}

void expect_right(const denoise_report& report, const test::images_of_requests& alone) {
  EXPECT_TRUE(test::same_bits(report.images, alone));
  EXPECT_EQ(report.failure(), "") << "the counts are the planned ones, by reason";
}

TEST(denoise_in_any_order, eight_requests_give_the_images_of_each_alone_under_every_seed) {
  const test::small_model model;
  const denoise_options options = eight_requests(model.folder());
  const device cpu = open_device("cpu", {.threads = 1});
  const test::images_of_requests alone = alone_on(cpu, options);
  for (std::uint64_t seed = 1; seed <= seeds_to_run(); ++seed) {
    SCOPED_TRACE("REPRISE_SIM_SEEDS=" + std::to_string(seed));
    const device gpu = open_device("sim:seed=" + std::to_string(seed));
    expect_right(denoise::run_denoise(gpu, disturbed(options, seed)), alone);
    if (seed % 3 == 0) {
      denoise_options plain = options;
      plain.eager = true;
      expect_right(denoise::run_denoise(gpu, plain), alone);
    }
    if (HasFailure()) return;
  }
}

TEST(denoise_in_any_order, eight_requests_give_the_images_of_each_alone_on_a_gpu) {
  if (!test::gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  const test::small_model model;
  const denoise_options options = eight_requests(model.folder());
  const device gpu = open_device(automatic_device());
  const test::images_of_requests alone = alone_on(gpu, options);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    expect_right(denoise::run_denoise(gpu, disturbed(options, seed)), alone);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace reprise
