// Each body of each built-in kernel against the generic CPU body, over the table of cases that
// `reprise check ops` has too: every rung of this machine's CPU, and every CUDA body on a card.
#include <gtest/gtest.h>

#include <set>

#include "reprise/platform/check_ops.hpp"
#include "reprise/platform/op_cases.hpp"
#include "tests/support/devices.hpp"

namespace reprise::test {
namespace {

void expect_parity(const std::string& spec) {
  const ops_check seen = check_ops(spec);
  EXPECT_FALSE(seen.results.empty());
  for (const parity_result& r : seen.results) {
    EXPECT_TRUE(r.seen.within) << r.kernel << " " << r.arch << " " << r.variant << ", "
                               << r.case_name << ", argument " << r.argument << ", element "
                               << r.seen.worst << ": " << r.seen.absolute << " " << r.seen.why;
  }
}

TEST(parity, the_table_has_a_case_for_every_kernel_but_those_that_need_a_graph) {
  std::set<std::string> without;
  const kernel_registry kernels = builtin_kernels();
  for (const cell_row& row : kernels.rows()) without.insert(row.kernel);
  each_builtin_op_case([&](const op_case& one) { without.erase(one.text); });
  EXPECT_EQ(without, std::set<std::string>{"switch_nodes(r:u64 r:u8)"});
}

TEST(parity, each_case_changes_what_its_kernel_writes) {
  const device cpu = open_for_test("cpu", 1);
  each_builtin_op_case([&](const op_case& one) {
    const case_outputs seen = run_case(one, cpu);
    EXPECT_EQ(seen.failed, "") << one.text << " " << one.name;
    std::size_t output = 0;
    bool changed = false;
    for (const case_view& v : one.views) {
      if (v.written) changed |= seen.bytes.at(output++) != v.bytes;
    }
    EXPECT_TRUE(changed) << one.text << " " << one.name;
  });
}

TEST(parity, every_rung_of_the_cpu_gives_the_values_of_generic) {
  expect_parity("cpu");
}

TEST(parity, every_cuda_body_agrees_with_the_cpu_body) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  expect_parity(automatic_device());
}

}  // namespace
}  // namespace reprise::test
