// Launching kernels: arguments arrive, accesses are declared, workspace is lent, and a captured
// launch keeps what it was given.
#include "reprise/kernel/launch.hpp"

#include <algorithm>

#include "tests/device/support.hpp"
#include "tests/kernel/kernels.hpp"

namespace reprise::test {
namespace {

class launch_on : public testing::TestWithParam<std::string> {
 protected:
  template <class T>
  buffer<T> holding(std::vector<T> values) {
    buffer<T> made{memory, values.size(), work};
    upload(work, values, made);
    return made;
  }

  std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
  device opened{open_device(GetParam(), {.threads = 2, .counts = counts}, test_kernels())};
  stream work{opened};
  pool memory{opened, "test"};
};

TEST_P(launch_on, runs_the_body_with_its_arguments) {
  const auto in = holding<float>({1, 2, 3});
  const buffer<float> out{memory, 3, work};
  const calls_since now{*counts};
  launch(work, transform, read(in), write(out), affine{.scale = 2, .shift = 0.5, .times = 2});
  EXPECT_EQ(now[seam_call::kernel], 1U);
  EXPECT_EQ(read_back(work, out), (std::vector<float>{5.5F, 9.5F, 13.5F}));
}

TEST_P(launch_on, takes_the_body_of_the_element_type) {
  const auto floats = holding<float>({0.25F, 1});
  const auto ints = holding<std::int32_t>({1, 2});
  launch(work, raise_by<float>, inout(floats), 0.5F);
  launch(work, raise_by<std::int32_t>, inout(ints), 3);
  EXPECT_EQ(read_back(work, floats), (std::vector<float>{0.75F, 1.5F}));
  EXPECT_EQ(read_back(work, ints), (std::vector<std::int32_t>{4, 5}));
}

TEST_P(launch_on, runs_in_the_order_of_the_stream) {
  const auto x = holding<std::int32_t>({0});
  for (int i = 0; i < 10; ++i) {
    launch(work, raise_by<std::int32_t>, inout(x), 1);
    if (i == 4) fill(work, write<std::int32_t>{x}, 100);
  }
  EXPECT_EQ(read_back(work, x), (std::vector<std::int32_t>{105}));
}

void launch_collect(site at, const buffer<std::int32_t>& ints, const buffer<double>& sum,
                    const buffer<std::uint8_t>& bytes, const buffer<double>& out) {
  launch(at, collect, true, read(ints), std::uint8_t{200}, inout(sum),
         std::int64_t{-(std::int64_t{1} << 40)}, -0.5F, read(bytes),
         affine{.scale = 8, .shift = 0.25, .times = 3}, write(out), 1e300);
}

const std::vector<double> collected{1, -7, 200, 11, -1099511627776.0, -0.5, 9, 11.25, 10, 1e300};

TEST_P(launch_on, passes_arguments_of_many_kinds) {
  const auto ints = holding<std::int32_t>({-7});
  const auto sum = holding<double>({11});
  const auto bytes = holding<std::uint8_t>({9});
  const buffer<double> out{memory, 10, work};
  launch_collect(work, ints, sum, bytes, out);
  EXPECT_EQ(read_back(work, out), collected);
  EXPECT_EQ(read_back(work, sum), (std::vector<double>{12}));
}

// D11: the packed arguments lie on the stack of the launch, which is gone at the replay.
[[gnu::noinline]] void overwrite_the_stack() {
  volatile char dirt[8192];
  for (volatile char& d : dirt) d = '\x5a';
}

TEST_P(launch_on, in_a_capture_keeps_its_arguments) {
  const auto ints = holding<std::int32_t>({-7});
  const auto sum = holding<double>({11});
  const auto bytes = holding<std::uint8_t>({9});
  const buffer<double> out{memory, 10, work};
  const graph made = capture(work, [&](stream_ref c) { launch_collect(c, ints, sum, bytes, out); });
  overwrite_the_stack();
  EXPECT_EQ(made.size(), 1U);
  const executable replayed = made.instantiate(work);
  EXPECT_EQ(read_back(work, sum), (std::vector<double>{11})) << "a capture runs nothing";
  for (int i = 0; i < 2; ++i) {
    upload(work, std::vector<double>{11}, sum);
    fill_bytes(work, reinterpret_cast<std::byte*>(out.all().data()), 80, 0, 1);
    replayed.launch(work);
    EXPECT_EQ(read_back(work, out), collected);
  }
}

TEST_P(launch_on, declares_its_accesses_in_order) {
  const auto ints = holding<std::int32_t>({1, 2, 3});
  const auto sum = holding<double>({11});
  const auto bytes = holding<std::uint8_t>({9});
  const buffer<double> out{memory, 2, work};
  std::vector<access> seen;
  std::string label;
  std::string file;
  {
    const submission_watch watch{[&](stream_ref, const reprise::work& what) {
      seen.assign(what.accesses.begin(), what.accesses.end());
      label = what.label;
      file = what.place.file_name();
    }};
    launch_collect(work, ints, sum, bytes, out);
  }
  work.synchronize();
  EXPECT_EQ(label, "test_collect");
  EXPECT_TRUE(file.ends_with("launch_test.cpp")) << file;
  const std::vector<access> wanted{{ints.all().data(), 12, false},
                                   {sum.all().data(), 8, true},
                                   {bytes.all().data(), 1, false},
                                   {out.all().data(), 16, true}};
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(seen[i].begin, wanted[i].begin) << i;
    EXPECT_EQ(seen[i].bytes, wanted[i].bytes) << i;
    EXPECT_EQ(seen[i].writes, wanted[i].writes) << i;
  }
}

// A place that lends workspace, as the run of a step does.
class lender {
 public:
  lender(stream_ref on, pool& from) : on_{on}, from_{from} {}
  operator stream_ref() const { return on_; }
  workspace_ref workspace() const { return {&take, const_cast<lender*>(this)}; }

  int asked = 0;
  std::size_t bytes = 0;
  block lent;

 private:
  static std::span<std::byte> take(void* owner, std::size_t bytes) {
    auto& self = *static_cast<lender*>(owner);
    ++self.asked;
    self.bytes = bytes;
    self.lent = block{self.from_, bytes, self.on_};
    return {self.lent.data(), bytes};
  }

  stream_ref on_;
  pool& from_;
};

TEST_P(launch_on, takes_its_workspace_from_who_lends_and_declares_it) {
  const buffer<std::int32_t> out{memory, 5, work};
  lender run{work, memory};
  std::vector<access> seen;
  {
    const submission_watch watch{[&](stream_ref, const reprise::work& what) {
      seen.assign(what.accesses.begin(), what.accesses.end());
    }};
    launch(run, by_way_of_workspace, write(out), 77);
  }
  EXPECT_EQ(read_back(work, out), std::vector<std::int32_t>(5, 77));
  EXPECT_EQ(run.asked, 1);
  EXPECT_EQ(run.bytes, 20U);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1].begin, run.lent.data());
  EXPECT_EQ(seen[1].bytes, 20U);
  EXPECT_TRUE(seen[1].writes);
}

TEST_P(launch_on, keeps_its_workspace_in_a_capture) {
  const buffer<std::int32_t> out{memory, 5, work};
  lender run{work, memory};
  const graph made =
      capture(run, [&](stream_ref) { launch(run, by_way_of_workspace, write(out), 78); });
  const executable replayed = made.instantiate(work);
  replayed.launch(work);
  EXPECT_EQ(read_back(work, out), std::vector<std::int32_t>(5, 78));
  EXPECT_EQ(run.asked, 1);
}

TEST_P(launch_on, that_needs_workspace_is_refused_on_a_plain_stream) {
  const buffer<std::int32_t> out{memory, 5, work};
  const calls_since now{*counts};
  const std::string message =
      message_of<usage_error>([&] { launch(work, by_way_of_workspace, write(out), 77); });
  EXPECT_EQ(message,
            "kernel test_workspace needs 20 bytes of workspace and a plain stream lends none; "
            "launch it inside a step");
  EXPECT_EQ(now[seam_call::kernel], 0U);
}

TEST_P(launch_on, that_needs_no_bytes_of_workspace_asks_nobody) {
  const buffer<std::int32_t> none{memory, 0, work};
  launch(work, by_way_of_workspace, write(none), 77);
  lender run{work, memory};
  launch(run, by_way_of_workspace, write(none), 77);
  EXPECT_EQ(run.asked, 0);
  work.synchronize();
}

TEST_P(launch_on, of_a_kernel_without_a_body_here_is_refused_with_what_there_is) {
  const auto in = holding<float>({1});
  const buffer<bf16> out{memory, 1, work};
  const calls_since now{*counts};
  const std::string message =
      message_of<usage_error>([&] { launch(work, bodiless, read(in), write(out)); });
  const std::string what = GetParam().starts_with("sim:") ? "checked body" : "body";
  EXPECT_TRUE(
      message.starts_with("kernel test_bodiless has no " + what + " for " + GetParam() + ":"))
      << message;
  EXPECT_TRUE(has(message, "cpu generic (not built), cuda sm_80 (not built)")) << message;
  EXPECT_FALSE(has(message, "\n"));
  EXPECT_EQ(now[seam_call::kernel], 0U);
}

TEST_P(launch_on, on_a_device_without_any_kernels_is_refused) {
  const device bare{open_bare(GetParam())};
  const stream on{bare};
  pool own{bare};
  const buffer<float> x{own, 1, on};
  const std::string message =
      message_of<usage_error>([&] { launch(on, raise_by<float>, inout(x), 1.0F); });
  EXPECT_TRUE(has(message, "test_raise")) << message;
  EXPECT_TRUE(has(message, GetParam())) << message;
}

TEST_P(launch_on, a_wrong_access_does_not_compile) {
  EXPECT_FALSE((std::constructible_from<write<float>, buffer<const float>>));
  EXPECT_FALSE(
      (std::invocable<decltype([](auto x) -> decltype(launch(std::declval<stream_ref>(),
                                                             raise_by<float>, x, 1.0F)) {}),
                      read<float>>));
}

INSTANTIATE_TEST_SUITE_P(devices, launch_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
