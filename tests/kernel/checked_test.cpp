// Checked bodies: what a plain launch packed arrives in the other compile of a body, and the log of
// the thread says which bytes that body touched.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/device/forwarding.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/device/touch_log.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/sim/device.hpp"
#include "tests/kernel/kernels.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {
namespace {

// The CPU device, with checked bodies for those it has.
class checking_device : public forwarding_device {
 public:
  explicit checking_device(int threads)
      : forwarding_device{sim::open_cpu(threads)}, traits_{forwarding_device::traits()} {
    traits_.name = "checking";
    traits_.arch_chain = {checked_arch};
  }
  const device_traits& traits() const override { return traits_; }

 private:
  device_traits traits_;
};

device open_checking(const kernel_registry& kernels, int threads = 1) {
  auto implementation = std::make_unique<checking_device>(threads);
  auto table = resolve_kernels(kernels, implementation->traits());
  return device{std::move(implementation), std::move(table)};
}

template <class T>
view<T> all(std::vector<T>& values) {
  return {values.data(), values.size()};
}

template <class T>
touched_range touched(std::vector<T>& values, bool writes) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T), writes};
}

// Whatever runs on this thread while it lives is noted.
class noted {
 public:
  // By address, as `expected` of the tests is too.
  std::vector<touched_range> taken() {
    const auto ranges = log_.taken();
    return by_address({ranges.begin(), ranges.end()});
  }
  static std::vector<touched_range> by_address(std::vector<touched_range> ranges) {
    std::ranges::sort(ranges, {}, [](const touched_range& r) {
      return std::pair{r.begin, r.writes};
    });
    return ranges;
  }

 private:
  touch_log log_;
  noting_touches here_{log_};
};

class checked_bodies : public testing::Test {
 protected:
  device opened{open_checking(test_kernels())};
  stream work{opened};
};

TEST_F(checked_bodies, run_with_the_arguments_of_a_plain_launch) {
  std::vector<float> in{1, 2, 3};
  std::vector<float> out(3);
  noted now;
  launch(work, transform, read<float>{all(in)}, write<float>{all(out)},
         affine{.scale = 2, .shift = 0.5, .times = 2});
  EXPECT_EQ(out, (std::vector<float>{5.5F, 9.5F, 13.5F}));
  EXPECT_EQ(now.taken(), noted::by_address({touched(in, false), touched(out, true)}));
}

TEST_F(checked_bodies, get_arguments_of_many_kinds_whole) {
  std::vector<std::int32_t> ints{-7};
  std::vector<double> sum{4.5};
  std::vector<std::uint8_t> bytes{250};
  std::vector<double> out(10);
  noted now;
  launch(work, collect, true, read<std::int32_t>{all(ints)}, std::uint8_t{200},
         inout<double>{all(sum)}, std::int64_t{-(std::int64_t{1} << 40)}, -0.5F,
         read<std::uint8_t>{all(bytes)}, affine{.scale = 8, .shift = 0.25, .times = 3},
         write<double>{all(out)}, 1e300);
  EXPECT_EQ(out,
            (std::vector<double>{1, -7, 200, 4.5, -1099511627776.0, -0.5, 250, 11.25, 10, 1e300}));
  EXPECT_EQ(sum[0], 5.5);
  EXPECT_EQ(now.taken(),
            noted::by_address({touched(ints, false), touched(sum, false), touched(sum, true),
                               touched(bytes, false), touched(out, true)}));
}

TEST_F(checked_bodies, are_taken_by_the_element_type) {
  std::vector<float> floats{0.25F, 1};
  std::vector<std::int32_t> ints{1, 2};
  launch(work, raise_by<float>, inout<float>{all(floats)}, 0.5F);
  launch(work, raise_by<std::int32_t>, inout<std::int32_t>{all(ints)}, 3);
  EXPECT_EQ(floats, (std::vector<float>{0.75F, 1.5F}));
  EXPECT_EQ(ints, (std::vector<std::int32_t>{4, 5}));
}

TEST_F(checked_bodies, note_their_workspace_and_may_read_back_what_they_wrote) {
  std::vector<std::int32_t> out(5);
  std::vector<std::int32_t> scratch(5);
  const cell_row& cell =
      device_ref{opened}.kernels()->resolve(by_way_of_workspace.id(), by_way_of_workspace.name());
  const detail::packed_call<write<std::int32_t>, std::int32_t> packed{
      cell.body, detail::make_pack(write<std::int32_t>{all(out)}, std::int32_t{77})};
  const auto* const arguments = reinterpret_cast<const std::byte*>(&packed);
  ASSERT_NE(cell.workspace, nullptr);
  EXPECT_EQ(cell.ask_workspace(cell.workspace, arguments), 20U);

  noted now;
  cpu_call call{std::as_writable_bytes(std::span{scratch}), {}};
  cell.invoke(&call, arguments);
  EXPECT_EQ(out, std::vector<std::int32_t>(5, 77));
  EXPECT_EQ(now.taken(), noted::by_address({touched(out, true), touched(scratch, true)}));
}

TEST_F(checked_bodies, run_unnoted_where_no_log_is) {
  std::vector<float> floats{0.25F, 1};
  touch_log log;
  launch(work, raise_by<float>, inout<float>{all(floats)}, 0.5F);
  EXPECT_TRUE(log.taken().empty());
  EXPECT_EQ(floats, (std::vector<float>{0.75F, 1.5F}));
}

TEST(checked_bodies_with_threads, stay_on_the_thread_of_the_log) {
  const device opened = open_checking(test_kernels(), 4);
  const stream work{opened};
  std::vector<float> in(1000, 1.0F);
  std::vector<float> out(in.size());
  noted now;
  launch(work, transform, read<float>{all(in)}, write<float>{all(out)}, affine{});
  EXPECT_EQ(now.taken(), noted::by_address({touched(in, false), touched(out, true)}));
}

// The scratch of a run: blocks of a pool.
class lender {
 public:
  lender(stream_ref on, pool& from) : on_{on}, from_{from} {}
  operator stream_ref() const { return on_; }
  workspace_ref workspace() const { return {&take, const_cast<lender*>(this)}; }

 private:
  static std::span<std::byte> take(void* owner, std::size_t bytes) {
    auto& self = *static_cast<lender*>(owner);
    self.lent_ = block{self.from_, bytes, self.on_};
    return {self.lent_.data(), bytes};
  }

  stream_ref on_;
  pool& from_;
  block lent_;
};

TEST(a_body_that_takes_more_workspace_than_it_asked_for, is_found_on_a_simulated_gpu) {
  const auto seen = std::make_shared<sim::journal>();
  {
    auto bare = sim::open_adversary({.seed = 1, .into = seen});
    auto table = resolve_kernels(test_kernels(), bare->traits());
    const device opened{std::move(bare), std::move(table)};
    const stream work{opened};
    pool memory{opened};
    const buffer<std::int32_t> out{memory, 5, work};
    const lender run{work, memory};
    launch(run, past_its_workspace, write(out), 9);
    EXPECT_THROW(work.synchronize(), device_error);
  }
  ASSERT_FALSE(seen->findings.empty());
  EXPECT_EQ(seen->findings.front().kind, sim::finding_kind::undeclared_access);
  EXPECT_TRUE(has(seen->findings.front().text,
                  "writes 4 bytes past its 16 bytes of workspace; let its cell's workspace_bytes "
                  "ask for them"))
      << seen->findings.front().text;
}

TEST(checked_cells, are_one_for_each_kernel_and_of_an_arch_of_their_own) {
  kernel_registry kernels;
  checked::add_test_kernels(kernels);
  EXPECT_EQ(kernels.rows().size(), 7U);
  for (const cell_row& row : kernels.rows()) {
    EXPECT_EQ(row.device, device_kind::cpu) << row.kernel;
    EXPECT_EQ(row.arch, checked_arch) << row.kernel;
    EXPECT_EQ(row.built, row.id != bodiless.id()) << row.kernel;
  }
}

TEST(checked_cells, are_of_the_kernels_that_plain_launches_name) {
  kernel_registry kernels;
  checked::add_test_kernels(kernels);
  kernel_registry plain;
  add_test_kernels(plain);
  for (const cell_row& row : kernels.rows()) {
    const auto same = [&](const cell_row& other) {
      return other.id == row.id && other.kernel == row.kernel;
    };
    EXPECT_TRUE(std::ranges::any_of(plain.rows(), same)) << row.kernel;
  }
}

TEST(checked_cells, are_never_those_of_a_device_that_does_not_ask) {
  device_traits cpu;
  cpu.name = "cpu";
  cpu.arch_chain = {"avx512", "avx2", "generic"};
  const kernel_table table{test_kernels(), cpu};
  EXPECT_EQ(table.resolved().size(), 6U);
  for (const cell_row& row : table.resolved()) EXPECT_EQ(row.arch, "generic") << row.kernel;
}

TEST(checked_cells, that_are_missing_are_refused_with_the_remedy) {
  kernel_registry kernels;
  add_test_kernels(kernels);
  const device opened = open_checking(kernels);
  const stream work{opened};
  std::vector<float> x(1);
  const std::string refusal =
      message_of<usage_error>([&] { launch(work, raise_by<float>, inout<float>{all(x)}, 1.0F); });
  EXPECT_TRUE(
      has(refusal, "kernel test_raise has no checked body for checking: it has cpu generic,"))
      << refusal;
  EXPECT_TRUE(has(refusal, "; give its .cpp to reprise_checked_bodies")) << refusal;
}

TEST(checked_cells, are_not_listed_for_a_device_that_could_not_run_them) {
  kernel_registry kernels;
  checked::add_test_kernels(kernels);
  device_traits cpu;
  cpu.name = "cpu";
  cpu.arch_chain = {"generic"};
  const kernel_table table{kernels, cpu};
  EXPECT_EQ(message_of<usage_error>([&] { table.resolve(transform.id(), transform.name()); }),
            "kernel test_transform has no body for cpu: it has none; add a cell for it, or open "
            "another device");
}

}  // namespace
}  // namespace reprise::test
