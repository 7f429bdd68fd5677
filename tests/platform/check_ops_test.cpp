// Holding each cell of a device to the CPU: which cells get their turn, and what is said of those
// that have no case.
#include "reprise/platform/check_ops.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "reprise/sim/device.hpp"

namespace reprise::test {
namespace {

constexpr kernel<void(write<float>)> seven{"seven"};
constexpr kernel<void(write<double>)> uncovered{"uncovered"};

void write_seven(cpu_call&, write<float> out) {
  out[0] = 7;
}
void write_eight(cpu_call&, write<float> out) {
  out[0] = 8;
}
void write_double(cpu_call&, write<double> out) {
  out[0] = 1;
}
bool never(const device_traits&) {
  return false;
}

void show_seven(const std::function<void(const op_case&)>& see) {
  float out = -1;
  see(case_of(seven, "one", write<float>{{&out, 1}}));
}

ops_check check(const kernel_registry& kernels) {
  return check_cells(
      kernels,
      [](const kernel_registry& some, const std::vector<variant_wish>& wishes) {
        device_traits traits;
        traits.name = "trial:0";
        traits.bodies = device_kind::trial;
        traits.arch_chain = {"t2", "t1"};
        auto implementation = sim::open_in_order(std::move(traits));
        auto table = resolve_kernels(some, implementation->traits(), wishes);
        return device{std::move(implementation), std::move(table)};
      },
      show_seven);
}

TEST(check_cells, gives_each_cell_that_is_available_its_turn) {
  kernel_registry kernels;
  kernels.add(seven, {{device_kind::cpu, "generic", write_seven},
                      {device_kind::trial, "t1", write_seven},
                      {device_kind::trial, "t2", write_seven},
                      {device_kind::trial, "t1", write_eight, "fast"},
                      {device_kind::trial, "t3", write_eight},
                      {.device = device_kind::trial,
                       .arch = "t2",
                       .body = write_eight,
                       .variant = "small",
                       .available = never}});
  const ops_check seen = check(kernels);
  EXPECT_EQ(seen.device, "trial:0");
  std::set<std::pair<std::string, bool>> cells;
  for (const parity_result& r : seen.results) {
    cells.emplace(r.arch + " " + r.variant, r.seen.within);
  }
  EXPECT_EQ(seen.results.size(), 3U);
  EXPECT_EQ(cells, (std::set<std::pair<std::string, bool>>{
                       {"t1 default", true}, {"t2 default", true}, {"t1 fast", false}}));
  EXPECT_FALSE(seen.within());
  EXPECT_TRUE(seen.not_compared.empty());
}

TEST(check_cells, names_what_it_has_no_case_for) {
  kernel_registry kernels;
  kernels.add(
      seven, {{device_kind::cpu, "generic", write_seven}, {device_kind::trial, "t1", write_seven}});
  kernels.add(uncovered, {{device_kind::trial, "t1", write_double}});
  const ops_check seen = check(kernels);
  EXPECT_TRUE(seen.within());
  EXPECT_EQ(seen.not_compared, std::vector<std::string>{"uncovered(w:f64)"});
}

TEST(check_cells, is_not_within_bounds_when_nothing_was_compared) {
  kernel_registry kernels;
  kernels.add(seven, {{device_kind::cpu, "generic", write_seven}});
  const ops_check seen = check(kernels);
  EXPECT_TRUE(seen.results.empty()) << "its CPU body is no cell of the device";
  EXPECT_FALSE(seen.within());
}

}  // namespace
}  // namespace reprise::test
