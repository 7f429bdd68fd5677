// Kinds of devices and their bodies: a body of an old arch runs on a newer device, one of a newer
// arch never, and a kernel without any runs its CPU body between two copies.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reprise/device/graph.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/kernel/trial.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {
namespace {

// Kernels of this file, with a CPU body alone.
constexpr kernel<void(read<float>, write<float>)> first_alone{"test_first_alone"};
const float* first_alone_wrote_to = nullptr;

void first_alone_cpu(cpu_call&, read<float> from, write<float> to) {
  to[0] = from[0];
  first_alone_wrote_to = to.data();
}

constexpr kernel<void(read<float>)> refusing{"test_refusing"};
void refusing_cpu(cpu_call&, read<float>) {
  throw usage_error{"test_refusing: no such width"};
}

// What was logged while it lives.
class log_lines {
 public:
  log_lines()
      : before_{set_log_sink([this](std::string_view line) { lines.emplace_back(line); })} {}
  ~log_lines() { set_log_sink(before_); }
  log_lines(const log_lines&) = delete;
  log_lines& operator=(const log_lines&) = delete;

  std::vector<std::string> lines;

 private:
  log_sink before_;
};

class trial_device : public testing::Test {
 protected:
  static kernel_registry kernels() {
    kernel_registry all = trial_kernels();
    all.add(first_alone, {{device_kind::cpu, "generic", first_alone_cpu}});
    all.add(refusing, {{device_kind::cpu, "generic", refusing_cpu}});
    return all;
  }
  template <class T>
  buffer<T> holding(const std::vector<T>& values) {
    buffer<T> made{memory, values.size(), work};
    copy(work, read<T>{view<const T>{values.data(), values.size()}}, write<T>{made});
    return made;
  }
  template <class T>
  std::vector<T> read_back(const buffer<T>& from) {
    std::vector<T> host(from.size());
    copy(work, read<T>{from}, write<T>{view<T>{host.data(), host.size()}});
    work.synchronize();
    return host;
  }
  const kernel_table& table() const { return *device_ref{opened}.kernels(); }

  log_lines logged;
  device opened{open_trial(kernels())};
  stream work{opened};
  pool memory{opened, "test"};
};

TEST_F(trial_device, runs_the_body_of_an_older_arch_where_it_has_none_of_its_own) {
  const cell_row& taken = table().resolve(raise_by<float>.id(), "raise");
  EXPECT_EQ(taken.device, device_kind::trial);
  EXPECT_EQ(taken.arch, "t1");
  const auto x = holding<float>({1, 2});
  launch(work, raise_by<float>, inout(x), 0.5F);
  EXPECT_EQ(read_back(x), (std::vector<float>{1.5F, 2.5F}));
  EXPECT_TRUE(logged.lines.empty());
}

TEST_F(trial_device, is_never_given_a_body_of_a_newer_arch) {
  kernel_registry newer = test_kernels();
  newer.add(raise_by<float>, {{device_kind::trial, "t3", raise_backwards}});
  const device old = open_trial(newer, {}, trial_traits({"t2", "t1"}));
  EXPECT_FALSE(device_ref{old}.kernels()->has(raise_by<float>.id()));
  EXPECT_NE(device_ref{old}.kernels()->fallback(raise_by<float>.id()), nullptr);
}

TEST_F(trial_device, takes_the_default_of_its_own_arch_before_a_wish_of_an_older_one) {
  kernel_registry both = trial_kernels();
  both.add(raise_by<float>, {{device_kind::trial, "t2", raise_backwards, "fast"},
                             {device_kind::trial, "t3", raise_backwards}});
  const auto arch_for = [&](std::vector<std::string> chain) {
    const device dev = open_trial(both, {{"fast"}}, trial_traits(std::move(chain)));
    const cell_row& cell = device_ref{dev}.kernels()->resolve(raise_by<float>.id(), "raise");
    return cell.arch + " " + cell.variant;
  };
  EXPECT_EQ(arch_for({"t3", "t2", "t1"}), "t3 default");
  EXPECT_EQ(arch_for({"t2", "t1"}), "t2 fast");
  EXPECT_EQ(arch_for({"t1"}), "t1 default");
}

TEST_F(trial_device, runs_the_cpu_body_of_a_kernel_that_it_has_none_for_and_says_so_once) {
  const auto in = holding<float>({1, 2, 3});
  const auto out = holding<float>({0, 0, 0});
  for (int i = 0; i < 3; ++i) {
    const node_id none = launch(work, transform, read(in), write(out), affine{2, 0.5, 2});
    EXPECT_EQ(none, node_id::none);
    EXPECT_EQ(read_back(out), (std::vector<float>{5.5F, 9.5F, 13.5F}));
  }
  EXPECT_EQ(logged.lines, (std::vector<std::string>{
                              "kernel test_transform has no body for trial:0 and runs its "
                              "CPU body, with a copy there and back; add a cell for trial"}));
}

TEST_F(trial_device, leaves_what_a_cpu_body_leaves_alone) {
  const auto in = holding<float>({7, 8, 9});
  const auto out = holding<float>({1, 2, 3});
  launch(work, first_alone, read(in), write(out));
  EXPECT_EQ(read_back(out), (std::vector<float>{7, 2, 3}));
  EXPECT_NE(first_alone_wrote_to, out.all().data()) << "a CPU body is given host memory";
}

TEST_F(trial_device, shows_a_cpu_body_views_that_overlap_as_such) {
  const auto x = holding<float>({1, 0, 0, 0});
  // Each element is written where the next one is read.
  launch(work, transform, read<float>{x.all().subview(0, 3)}, write<float>{x.all().subview(1, 3)},
         affine{1, 1, 1});
  EXPECT_EQ(read_back(x), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(trial_device, gives_a_cpu_body_its_workspace_and_views_of_nothing) {
  const auto out = holding<std::int32_t>({0, 0, 0});
  launch(work, by_way_of_workspace, write(out), 77);
  EXPECT_EQ(read_back(out), (std::vector<std::int32_t>{77, 77, 77}));
  launch(work, by_way_of_workspace, write<std::int32_t>{out.all().subview(0, 0)}, 78);
  EXPECT_EQ(read_back(out), (std::vector<std::int32_t>{77, 77, 77}));
}

TEST_F(trial_device, passes_many_kinds_of_arguments_to_a_cpu_body) {
  const auto ints = holding<std::int32_t>({-7});
  const auto sum = holding<double>({11});
  const auto bytes = holding<std::uint8_t>({9});
  const buffer<double> out{memory, 10, work};
  launch(work, collect, true, read(ints), std::uint8_t{200}, inout(sum),
         std::int64_t{-(std::int64_t{1} << 40)}, -0.5F, read(bytes), affine{8, 0.25, 3}, write(out),
         1e300);
  EXPECT_EQ(read_back(out),
            (std::vector<double>{1, -7, 200, 11, -1099511627776.0, -0.5, 9, 11.25, 10, 1e300}));
  EXPECT_EQ(read_back(sum), std::vector<double>{12});
}

TEST_F(trial_device, lets_what_a_cpu_body_throws_arrive_and_goes_on) {
  const auto x = holding<float>({1});
  EXPECT_EQ(message_of<usage_error>([&] { launch(work, refusing, read(x)); }),
            "test_refusing: no such width");
  launch(work, raise_by<float>, inout(x), 1.0F);
  EXPECT_EQ(read_back(x), std::vector<float>{2});
}

TEST_F(trial_device, refuses_a_cpu_body_in_a_capture_that_no_step_made) {
  const auto in = holding<float>({1});
  const auto out = holding<float>({5});
  EXPECT_EQ(message_of<usage_error>([&] {
              (void)capture(work, [&](stream_ref c) {
                launch(c, transform, read(in), write(out), affine{});
              });
            }),
            "kernel test_transform has no body for trial:0 and runs its CPU body, which a graph "
            "cannot hold; launch it before or after the capture, or inside a step");
  EXPECT_EQ(read_back(out), std::vector<float>{5});
  EXPECT_TRUE(logged.lines.empty());
}

TEST_F(trial_device, refuses_a_kernel_that_nobody_has_a_body_for) {
  const auto in = holding<float>({1});
  const buffer<bf16> out{memory, 1, work};
  const std::string message =
      message_of<usage_error>([&] { launch(work, bodiless, read(in), write(out)); });
  EXPECT_TRUE(message.starts_with("kernel test_bodiless has no body for trial:0: it has"))
      << message;
}

// A run that ends its capture for what cannot be captured.
class breaking_run {
 public:
  explicit breaking_run(stream_ref on) : on_{on} {}
  operator stream_ref() const { return on_; }
  break_ref breaks() const { return {&run_eagerly, const_cast<breaking_run*>(this)}; }

  std::vector<std::string> reasons;

 private:
  static void run_eagerly(void* owner, std::string_view why,
                          const std::function<void(stream_ref)>& run) {
    auto& self = *static_cast<breaking_run*>(owner);
    self.reasons.emplace_back(why);
    run(self.on_);
  }

  stream_ref on_;
};

TEST_F(trial_device, runs_a_cpu_body_inside_a_step_as_an_eager_break_with_its_reason) {
  const auto in = holding<float>({1});
  const auto out = holding<float>({5});
  breaking_run run{work};
  launch(run, transform, read(in), write(out), affine{3, 1, 1});
  launch(run, raise_by<float>, inout(out), 1.0F);
  EXPECT_EQ(read_back(out), std::vector<float>{5});
  EXPECT_EQ(run.reasons,
            (std::vector<std::string>{
                "kernel test_transform has no body for trial:0 and runs its CPU body"}));
}

TEST_F(trial_device, tells_fallbacks_apart_in_its_fingerprint) {
  kernel_registry with_body = kernels();
  with_body.add(raise_by<std::int32_t>, {{device_kind::trial, "t1", not_built{}}});
  EXPECT_EQ(device_ref{open_trial(with_body)}.kernels()->fingerprint(), table().fingerprint());
  const kernel_registry without =
      kernels().only([](const cell_row& row) { return row.id != transform.id(); });
  EXPECT_NE(device_ref{open_trial(without)}.kernels()->fingerprint(), table().fingerprint());
}

TEST(a_cpu, has_no_fallbacks) {
  device_traits traits;
  traits.name = "cpu";
  traits.arch_chain = {"avx2"};
  const kernel_table table{trial_kernels(), traits};
  EXPECT_EQ(table.fallback(transform.id()), nullptr) << "its own bodies are CPU bodies";
}

}  // namespace
}  // namespace reprise::test
