// X15: a replay that writes where it must not, and is told of it who knows where: the search names
// the work, in processes of its own.
#include "reprise/replay/bisect.hpp"

#include <filesystem>

#include "tests/replay/cases.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise::test {
namespace {

constexpr int kernels = 64, bad_kernel = 37;

class bisect_victim : public replay_case {};
INSTANTIATE_TEST_SUITE_P(devices, bisect_victim, testing::ValuesIn(devices_under_test()),
                         [](const auto& p) { return test_name(p.param); });

// What the next test runs: 64 kernels in a row, of which number 37 goes where its input says. That
// is inside for two calls, and far outside in the third.
TEST_P(bisect_victim, DISABLED_writes_outside) {
  signature declared{"victim"};
  const auto where = declared.in<std::int64_t>("where", {1});
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const view<float> x = run.make(y, dims{4});
                    fill(run, write<float>{x}, 0.0F);
                    const view<float> aside = run.scratch<float>(dims{4});
                    for (int i = 0; i < kernels; ++i) {
                      if (i == bad_kernel) {
                        launch(run, reach, read(run[where]), inout<float>{x});
                      } else {
                        launch(run, scale_here, read<float>{x}, write<float>{aside},
                               static_cast<float>(i));
                      }
                    }
                  }};
  replay_cache cache{dev()};
  // A finding, a signal that takes the process along (which a sanitizer would catch), or a lost
  // device.
  const bool by_signal = GetParam() == "sim:seed=2" && !sanitized;
  const std::int64_t outside = GetParam().starts_with("cuda") ? std::int64_t{1} << 40
                               : by_signal                    ? std::int64_t{1} << 30
                                                              : 5;
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{3}, outside}) {
    cache.run(s(), what, {where.from_host(std::span{&at, 1})});
  }
  s().synchronize();  // which is far from what failed
}

class bisect : public testing::TestWithParam<std::string> {
 protected:
  static std::vector<std::string> victim(const std::string& test) {
    return {std::filesystem::read_symlink("/proc/self/exe").string(),
            "--gtest_also_run_disabled_tests", "--gtest_brief=1", "--gtest_filter=" + test};
  }
};
INSTANTIATE_TEST_SUITE_P(devices, bisect, testing::ValuesIn(devices_under_test()),
                         [](const auto& p) { return test_name(p.param); });

TEST_P(bisect, X15_names_the_work_that_a_replay_fails_at) {
  if (GetParam() == "cpu") GTEST_SKIP() << "it looks at no accesses";
  int runs = 0;
  bisect_options how;
  how.on_run = [&](std::optional<std::size_t>, bool) { ++runs; };
  const auto found = find_failing_work(
      victim("devices/bisect_victim.DISABLED_writes_outside/" + test_name(GetParam())), how);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, "victim");
  EXPECT_EQ(found->label, "test_reach");
  EXPECT_EQ(found->kind, "kernel");
  EXPECT_EQ(found->works, kernels + 2U) << "one brings the input, one fills";
  EXPECT_EQ(found->index, bad_kernel + 2U);
  EXPECT_EQ(found->replay, 3U);
  EXPECT_FALSE(found->message.empty());
  EXPECT_EQ(found->runs, runs);
  EXPECT_LE(found->runs, 1 + 7) << "all of it once, then halves";
}

TEST_P(bisect, finds_nothing_where_no_replay_fails) {
  EXPECT_FALSE(find_failing_work({"true"}).has_value());
  EXPECT_FALSE(find_failing_work({"false"}).has_value()) << "it failed, and no replay of it did";
  EXPECT_TRUE(has(message_of<usage_error>([] { (void)find_failing_work({}); }), "give one"));
  EXPECT_TRUE(has(message_of<usage_error>([] { (void)find_failing_work({"/nowhere/at all"}); }),
                  "/nowhere/at all"));
  bisect_options brief;
  brief.seconds = 1;
  EXPECT_TRUE(has(message_of<usage_error>([&] {
                    (void)find_failing_work({"sleep", "20"}, brief);
                  }),
                  "no replay of it had begun"));
}

}  // namespace
}  // namespace reprise::test
