// The kernels that Reprise brings: each cell once, and every kernel has a body on the CPU.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "reprise/base/error.hpp"
#include "reprise/ops/builtin.hpp"
#include "tests/support/devices.hpp"

namespace reprise::test {
namespace {

TEST(builtin_kernels, are_there_each_cell_once) {
  const kernel_registry kernels = builtin_kernels();
  std::set<std::tuple<kernel_id, device_kind, std::string, std::string>> cells;
  for (const cell_row& row : kernels.rows()) {
    EXPECT_TRUE(cells.emplace(row.id, row.device, row.arch, row.variant).second) << row.kernel;
  }
  EXPECT_GT(cells.size(), 8U);
}

TEST(builtin_kernels, have_a_generic_body_on_the_cpu_each) {
  const kernel_registry kernels = builtin_kernels();
  std::map<std::string, bool> generic;
  for (const cell_row& row : kernels.rows()) {
    generic[row.kernel] |= row.device == device_kind::cpu && row.arch == "generic" && row.built &&
                           row.variant == "default";
  }
  for (const auto& [kernel, there] : generic) EXPECT_TRUE(there) << kernel;
}

TEST(builtin_kernels, have_a_checked_body_each) {
  const kernel_registry kernels = builtin_kernels();
  std::map<std::string, bool> checked;
  for (const cell_row& row : kernels.rows()) {
    checked[row.kernel] |= row.device == device_kind::cpu && row.arch == checked_arch && row.built;
  }
  for (const auto& [kernel, there] : checked) EXPECT_TRUE(there) << kernel;
}

// Of f64 and of no narrower numbers: what the others are checked with, on the CPU.
bool is_for_the_cpu_alone(const std::string& kernel) {
  const auto has = [&](const char* type) { return kernel.find(type) != std::string::npos; };
  return has(":f64") && !has(":f32") && !has(":bf16");
}

TEST(builtin_kernels, list_a_cuda_cell_each_whether_it_was_built_or_not) {
  const kernel_registry kernels = builtin_kernels();
  std::map<std::string, bool> cuda;
  for (const cell_row& row : kernels.rows()) cuda[row.kernel] |= row.device == device_kind::cuda;
  for (const auto& [kernel, there] : cuda) {
    EXPECT_EQ(there, !is_for_the_cpu_alone(kernel)) << kernel;
  }
}

TEST(builtin_kernels, with_one_text_are_one_kernel) {
  std::map<std::string, kernel_id> ids;
  const kernel_registry kernels = builtin_kernels();
  for (const cell_row& row : kernels.rows()) {
    const auto [at, fresh] = ids.emplace(row.kernel, row.id);
    EXPECT_EQ(at->second, row.id) << row.kernel;
  }
}

TEST(builtin_kernels, are_not_added_twice) {
  kernel_registry kernels = builtin_kernels();
  const std::size_t before = kernels.rows().size();
  EXPECT_THROW(add_builtin_kernels(kernels), usage_error);
  EXPECT_EQ(kernels.rows().size(), before);
}

class builtin_on : public testing::TestWithParam<std::string> {};

TEST_P(builtin_on, are_all_resolved) {
  const device opened = open_for_test(GetParam(), 1);
  std::set<kernel_id> resolved;
  for (const cell_row& row : device_ref{opened}.kernels()->resolved()) {
    EXPECT_TRUE(resolved.insert(row.id).second) << row.kernel;
    if (is_for_the_cpu_alone(row.kernel)) continue;
    EXPECT_EQ(row.device, device_ref{opened}.bodies()) << row.kernel;
    EXPECT_TRUE(row.built) << row.kernel;
    EXPECT_EQ(row.arch == checked_arch, GetParam().starts_with("sim:")) << row.kernel;
  }
  const kernel_registry kernels = builtin_kernels();
  const bool on_the_cpu = device_ref{opened}.bodies() == device_kind::cpu;
  for (const cell_row& row : kernels.rows()) {
    if (!on_the_cpu && is_for_the_cpu_alone(row.kernel)) continue;
    EXPECT_TRUE(resolved.contains(row.id)) << row.kernel << " has no body on " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(devices, builtin_on, testing::ValuesIn(devices_under_test()),
                         [](const auto& of) { return test_name(of.param); });

}  // namespace
}  // namespace reprise::test
