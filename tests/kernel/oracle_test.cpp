// The parity oracle on a device of another kind, whose bodies are right, slightly off, and wrong in
// each way that it has to see.
#include "reprise/kernel/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernel/trial.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

void slightly_off(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += by;
  x[2] += 0.125F;
}
void beside(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = 0; i <= x.size(); ++i) x.data()[i] += by;
}
void throwing(cpu_call&, inout<float>, float) {
  throw usage_error{"not today"};
}
void half_done(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = 0; i < x.size() / 2; ++i) x[i] += by;
}
void collect_wrongly(cpu_call&, bool, read<std::int32_t>, std::uint8_t, inout<double> sum,
                     std::int64_t, float, read<std::uint8_t>, affine, write<double> out, double) {
  sum[0] += 1;
  out[0] = 0;
}

device open_reference() {
  device_traits traits;
  traits.name = "cpu generic";
  traits.arch_chain = {"generic"};
  return open_trial(test_kernels(), {}, traits);
}

op_case raise_case() {
  std::vector<float> x{1, -8, 4, 2};
  return case_of(raise_by<float>, "four", inout<float>{{x.data(), x.size()}}, 0.5F);
}

using raise_body = void (*)(cpu_call&, inout<float>, float);

parity_result held_to_the_cpu(raise_body body, const parity_bound& bound = {}) {
  kernel_registry kernels;
  kernels.add(raise_by<float>,
              {{.device = device_kind::trial, .arch = "t1", .body = body, .bound = bound}});
  const device reference = open_reference();
  const device on = open_trial(kernels);
  const op_case one = raise_case();
  const auto results = compare_case(one, run_case(one, reference), on);
  EXPECT_EQ(results.size(), 1U);
  return results.at(0);
}

TEST(oracle, agrees_with_a_body_that_gives_the_same_values) {
  const parity_result seen = held_to_the_cpu(raise_backwards);
  EXPECT_EQ(seen.kernel, "test_raise(rw:f32)");
  EXPECT_EQ(seen.case_name, "four");
  EXPECT_EQ(seen.arch, "t1");
  EXPECT_EQ(seen.variant, "default");
  EXPECT_EQ(seen.argument, 0U);
  EXPECT_EQ(seen.seen.absolute, 0);
  EXPECT_TRUE(seen.seen.within);
}

TEST(oracle, names_the_worst_element_and_holds_it_to_the_bound_of_the_cell) {
  const parity_result exact = held_to_the_cpu(slightly_off);
  EXPECT_EQ(exact.seen.worst, 2U);
  EXPECT_EQ(exact.seen.absolute, 0.125);
  EXPECT_EQ(exact.seen.relative, 0.125 / 7.5);
  EXPECT_FALSE(exact.seen.within);
  EXPECT_TRUE(held_to_the_cpu(slightly_off, {.relative = 0.02}).seen.within);
  EXPECT_FALSE(held_to_the_cpu(slightly_off, {.relative = 0.01}).seen.within);
}

TEST(oracle, sees_what_a_body_did_not_write) {
  EXPECT_EQ(held_to_the_cpu(half_done).seen.absolute, 0.5);
}

TEST(oracle, sees_what_a_body_wrote_beside_its_views) {
  const parity_result seen = held_to_the_cpu(beside, {.absolute = 100});
  EXPECT_EQ(seen.seen.absolute, infinite);
  EXPECT_FALSE(seen.seen.within);
  EXPECT_EQ(seen.seen.why, "on trial:0: it wrote beside its 16 bytes");
}

TEST(oracle, takes_a_body_that_throws_for_infinitely_far_away) {
  const parity_result seen = held_to_the_cpu(throwing, {.absolute = 100});
  EXPECT_EQ(seen.seen.absolute, infinite);
  EXPECT_EQ(seen.seen.why, "on trial:0: not today");
}

TEST(oracle, has_a_result_for_each_output_and_says_which_argument_it_is) {
  kernel_registry kernels;
  kernels.add(collect, {{device_kind::trial, "t2", collect_wrongly}});
  std::vector<std::int32_t> ints{-7};
  std::vector<double> sum{11};
  std::vector<std::uint8_t> bytes{9};
  std::vector<double> out(10, -1);
  const op_case one =
      case_of(collect, "ten", true, read<std::int32_t>{view<std::int32_t>{ints.data(), 1}},
              std::uint8_t{2}, inout<double>{{sum.data(), 1}}, std::int64_t{3}, -0.5F,
              read<std::uint8_t>{view<std::uint8_t>{bytes.data(), 1}}, affine{},
              write<double>{{out.data(), out.size()}}, 4.0);
  const device reference = open_reference();
  const device on = open_trial(kernels);
  const auto results = compare_case(one, run_case(one, reference), on);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].argument, 3U);
  EXPECT_TRUE(results[0].seen.within);
  EXPECT_EQ(results[1].argument, 8U);
  EXPECT_FALSE(results[1].seen.within);
}

TEST(oracle, gives_a_body_its_workspace) {
  std::vector<std::int32_t> out(5, -1);
  const op_case one =
      case_of(by_way_of_workspace, "five", write<std::int32_t>{{out.data(), out.size()}}, 77);
  const device reference = open_reference();
  const auto results = compare_case(one, run_case(one, reference), reference);
  ASSERT_EQ(results.size(), 1U);
  EXPECT_TRUE(results[0].seen.within) << results[0].seen.why;
}

TEST(oracle, finds_no_parity_in_empty_outputs) {
  std::vector<float> none;
  const op_case one = case_of(raise_by<float>, "none", inout<float>{{none.data(), 0}}, 1.0F);
  const device reference = open_reference();
  EXPECT_FALSE(compare_case(one, run_case(one, reference), reference).at(0).seen.within);
}

TEST(oracle, refuses_a_device_without_a_body) {
  const device reference = open_reference();
  const device bare = open_trial({});
  const op_case one = raise_case();
  EXPECT_THROW(compare_case(one, run_case(one, reference), bare), usage_error);
}

}  // namespace
}  // namespace reprise::test
