// Training and sampling under any order of works that a GPU may choose, in configurations drawn by
// the seed: the bits of a plain run, and the counts of the plan.
//
// REPRISE_SIM_SEEDS says how many seeds run, at most 500; by default a few.
// REPRISE_MEMORY_STEPS=200 makes each of them long.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/memory/support.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise {
namespace {

using memory::memory_options;

std::uint64_t seeds_to_run() {
  constexpr std::uint64_t few = test::sanitized ? 3 : 12;
  const char* const wanted = std::getenv("REPRISE_SIM_SEEDS");
  return wanted == nullptr ? few : std::min<std::uint64_t>(500, std::strtoull(wanted, nullptr, 10));
}

// Policies, windows and cuts are spread over the seeds; the rest is drawn.
memory_options drawn(const std::filesystem::path& text, std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  const auto one_of = [&](const auto& all) { return all[draw() % all.size()]; };
  memory_options o = test::small_options(text);
  o.conflict = test::policies()[seed % test::policies().size()];
  o.accumulate = seed / 2 % 2 == 0 ? 3 : 1;
  o.regions = seed / 4 % 2 == 0 ? 4 : 1;
  o.storage = one_of(std::vector{dtype::f32, dtype::bf16});
  o.rows = one_of(std::vector{saved_rows::as_stored, saved_rows::fp8, saved_rows::int4});
  o.wide_bank_grad = draw() % 2 == 0;
  o.layers = 1 + static_cast<std::int64_t>(draw() % 2);
  o.context = 1 + static_cast<std::int64_t>(draw() % 9);
  o.seed = seed;
  o.steps = test::steps_to_run(8);
  return o;
}

TEST(memory_in_any_order, trains_and_samples_as_a_plain_run_under_every_seed) {
  const test::text_file text{test::few_lines};
  for (std::uint64_t seed = 1; seed <= seeds_to_run(); ++seed) {
    const memory_options o = drawn(text.path(), seed);
    SCOPED_TRACE("REPRISE_SIM_SEEDS=" + std::to_string(seed) + ", " + test::told(o));
    const device gpu = open_device("sim:seed=" + std::to_string(seed));
    test::expect_right(memory::run_memory(gpu, o), o);
    if (HasFailure()) return;
  }
}

TEST(memory_in_any_order, trains_and_samples_as_a_plain_run_on_a_gpu) {
  if (!test::gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  const test::text_file text{test::few_lines};
  const device gpu = open_device(automatic_device());
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    const memory_options o = drawn(text.path(), seed);
    SCOPED_TRACE(test::told(o));
    test::expect_right(memory::run_memory(gpu, o), o);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace reprise
