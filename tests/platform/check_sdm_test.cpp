// check_sdm: cases with the right results pass on every device, and what is off, not a number, or
// not the case's is told.
#include "reprise/platform/check_sdm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/sdm/plain_memory.hpp"
#include "tests/support/devices.hpp"

namespace reprise::test {
namespace {

reprise::sdm_case right_case() {
  const memory_call call = random_call(
      {.streams = 2, .slots = 12, .width = 5, .tokens = 9, .writes = 2, .reads = 3, .decays = 2},
      {.seed = 4});
  const memory_run run = in_doubles(call);
  reprise::sdm_case c;
  c.name = "random";
  c.sizes = call.sizes;
  c.chunks = {1, 4, 16};
  c.bank = call.bank;
  c.k_val = call.k_val;
  c.v = call.v;
  c.beta = call.beta;
  c.g = call.g;
  c.q_val = call.q_val;
  c.k_idx = call.k_idx;
  c.q_idx = call.q_idx;
  c.dy = call.dy;
  c.d_final_bank = call.d_final;
  c.readings = run.readings;
  c.final_bank = run.final_bank;
  c.d_bank = run.d_bank;
  c.d_k_val = run.dk;
  c.d_v = run.m;
  for (std::size_t i = 0; i < c.d_v.size(); ++i) {
    c.d_v[i] *= c.beta[i / static_cast<std::size_t>(c.sizes.width)];
  }
  c.d_beta = run.dbeta;
  c.d_g = run.dg_by_write;
  c.d_q_val = run.dq;
  return c;
}

class check_sdm_on : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(devices, check_sdm_on, testing::ValuesIn(devices_under_test()),
                         [](const auto& of) { return test_name(of.param); });

TEST_P(check_sdm_on, finds_right_results_within_every_tolerance) {
  const std::vector<sdm_run> runs = check_sdm(GetParam(), {right_case()});
  ASSERT_EQ(runs.size(), 12U);
  for (const sdm_run& run : runs) {
    EXPECT_TRUE(run.within()) << run.storage << ", chunk " << run.chunk;
    EXPECT_EQ(run.errors.size(), 8U);
    EXPECT_EQ(run.device == "cpu", run.storage == "f64" || GetParam() == "cpu");
  }
}

TEST(check_sdm, tells_one_wrong_number_in_any_quantity) {
  const auto spoiled = [](std::vector<double> sdm_case::*of, double by) {
    reprise::sdm_case c = right_case();
    c.chunks = {4};
    (c.*of)[1] += by;
    const std::vector<sdm_run> runs = check_sdm("cpu", {c});
    return std::ranges::none_of(runs, &sdm_run::within);
  };
  for (const auto of :
       {&sdm_case::readings, &sdm_case::final_bank, &sdm_case::d_bank, &sdm_case::d_k_val,
        &sdm_case::d_v, &sdm_case::d_beta, &sdm_case::d_g, &sdm_case::d_q_val}) {
    EXPECT_TRUE(spoiled(of, 5.0));
    EXPECT_FALSE(spoiled(of, 1e-13));
  }
}

// Of which only the last was seen when the largest was taken by a comparison.
TEST(check_sdm, takes_a_result_that_is_no_number_for_infinitely_wrong) {
  reprise::sdm_case c = right_case();
  c.chunks = {4};
  c.v[0] = std::numeric_limits<double>::quiet_NaN();
  for (const sdm_run& run : check_sdm("cpu", {c})) {
    EXPECT_FALSE(run.within()) << run.storage;
    EXPECT_TRUE(std::isinf(run.errors[0].relative)) << run.storage;
  }
}

}  // namespace
}  // namespace reprise::test
