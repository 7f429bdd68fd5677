// Training under any order of works that a GPU may choose, in configurations drawn by the seed: the
// bits of a plain run, and the counts of the plan.
//
// REPRISE_SIM_SEEDS says how many seeds run, at most 500; by default a few.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/support/sanitized.hpp"
#include "tests/train_workload/support.hpp"

namespace reprise {
namespace {

using train::train_options;

std::uint64_t seeds_to_run() {
  constexpr std::uint64_t few = test::sanitized ? 3 : 12;
  const char* const wanted = std::getenv("REPRISE_SIM_SEEDS");
  return wanted == nullptr ? few : std::min<std::uint64_t>(500, std::strtoull(wanted, nullptr, 10));
}

struct drawn_run {
  train_options options;
  std::vector<train::epoch> epochs;
};

// Windows of one to four micro-batches, of which a few are short or without labels.
train::epoch drawn_epoch(std::mt19937_64& draw, std::int64_t rows) {
  train::epoch windows;
  std::int64_t first = 0;
  while (first + rows <= test::few_clothes().train.count()) {
    train::window& one = windows.emplace_back();
    const std::uint64_t size = 1 + draw() % 4;
    for (std::uint64_t i = 0; i < size && first + rows <= test::few_clothes().train.count(); ++i) {
      const std::int64_t count = draw() % 4 == 0 ? 2 + static_cast<std::int64_t>(draw() % 4) : rows;
      one.push_back({first, count, draw() % 5 != 0});
      first += count;
    }
  }
  return windows;
}

drawn_run drawn(std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  drawn_run made;
  train_options& o = made.options;
  o = test::small_options();
  o.hidden = 4 + static_cast<std::int64_t>(draw() % 5);
  o.width = 3 + static_cast<std::int64_t>(draw() % 4);
  o.mask_hidden = 1 + static_cast<std::int64_t>(draw() % 3);
  o.casts = draw() % 2 == 0 ? cast_mode::none : cast_mode::bf16;
  if (draw() % 3 == 0) {  // a few windows overflow
    o.scale = {true, 0x1p124F};
    o.mask_weight = 64;
  }
  o.clip = draw() % 3 == 0 ? 0.0F : 0.5F;
  o.dropout = draw() % 4 == 0 ? 0.0F : 0.3F;
  const std::uint64_t parts = seed % 4 == 0 ? 1 + draw() % 7 : 7;
  o.graphed = {(parts & 1) != 0, (parts & 2) != 0, (parts & 4) != 0};
  o.seed = seed;
  made.epochs.assign(2, drawn_epoch(draw, 6));
  return made;
}

void expect_right_on(device_ref on, const drawn_run& asked) {
  const train::train_report report =
      train::run_train(on, asked.options, test::few_clothes(), asked.epochs);
  test::expect_right(report, 2 * asked.epochs.front().size(), 2);
}

TEST(train_in_any_order, has_the_bits_of_a_plain_run_under_every_seed) {
  for (std::uint64_t seed = 1; seed <= seeds_to_run(); ++seed) {
    const drawn_run asked = drawn(seed);
    SCOPED_TRACE("REPRISE_SIM_SEEDS=" + std::to_string(seed) + ", " + test::told(asked.options));
    expect_right_on(open_device("sim:seed=" + std::to_string(seed)), asked);
    if (HasFailure()) return;
  }
}

TEST(train_in_any_order, has_the_bits_of_a_plain_run_on_a_gpu) {
  if (!test::gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  const device gpu = open_device(automatic_device());
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const drawn_run asked = drawn(seed);
    SCOPED_TRACE(test::told(asked.options));
    expect_right_on(gpu, asked);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace reprise
