// A device without a single body of its own runs the built-in kernels by their CPU bodies, on a
// stream and inside steps, with the values of the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/kernel/oracle.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/platform/op_cases.hpp"
#include "reprise/platform/platform.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise::test {
namespace {

device open_without_bodies() {
  device_traits traits;
  traits.name = "trial:0";
  traits.bodies = device_kind::trial;
  traits.arch_chain = {"t1"};
  auto implementation = sim::open_in_order(std::move(traits));
  auto table = resolve_kernels(builtin_kernels(), implementation->traits());
  return device{std::move(implementation), std::move(table)};
}

class without_bodies : public testing::Test {
 protected:
  without_bodies() {
    set_log_sink([this](std::string_view line) { lines.emplace_back(line); });
  }
  ~without_bodies() override { set_log_sink({}); }

  std::vector<std::string> lines;
  device bare{open_without_bodies()};
  device cpu{open_device("cpu", {.threads = 1})};
};

TEST_F(without_bodies, every_case_of_parity_has_the_values_of_the_cpu) {
  std::size_t compared = 0;
  each_builtin_op_case([&](const op_case& one) {
    const case_outputs wanted = run_case(one, cpu);
    const case_outputs got = run_case(one, bare);
    EXPECT_EQ(got.failed, "") << one.text << " " << one.name;
    EXPECT_EQ(got.bytes, wanted.bytes) << one.text << " " << one.name;
    ++compared;
  });
  EXPECT_GT(compared, 100U);
}

// The rows of x through rms_norm, twice.
std::vector<float> normed_in_steps(device_ref on, int times) {
  const stream work{on};
  pool memory{on};
  const std::vector<float> gains(64, 1.5F);
  const buffer<float> gain{memory, gains.size(), work};
  copy(work, read<float>{view<const float>{gains.data(), gains.size()}}, write<float>{gain});

  signature declared{"norms"};
  const auto x = declared.in<float>("x", {any, 64});
  const auto y = declared.out<float>("y");
  const step norms{declared, [&](step_scope& run) {
                     const view<float> once = run.scratch<float>(run.shape(x));
                     launch(run, rms_norm<float, float>, read(run[x]), read(gain), write(once), 64,
                            1e-5F);
                     launch(run, rms_norm<float, float>, read(once), read(gain),
                            write(run.make(y, run.shape(x))), 64, 1e-5F);
                   }};
  std::vector<float> values(3 * 64);
  std::iota(values.begin(), values.end(), -50.0F);
  std::vector<float> all;
  replay_cache cache{on};
  for (int i = 0; i < times; ++i) {
    const step_result done = cache.run(work, norms, {x.from_host(values)});
    std::vector<float> host(values.size());
    copy(work, read<float>{done[y].get()}, write<float>{view<float>{host.data(), host.size()}});
    work.synchronize();
    all.insert(all.end(), host.begin(), host.end());
    values[0] += 1;
  }
  return all;
}

TEST_F(without_bodies, steps_give_what_they_give_on_the_cpu_however_they_run) {
  EXPECT_EQ(normed_in_steps(bare, 5), normed_in_steps(cpu, 5));
  const std::string once = "kernel rms_norm has no body for trial:0 and runs its CPU body";
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [&](const std::string& line) { return line.starts_with(once); }),
            1);
}

}  // namespace
}  // namespace reprise::test
