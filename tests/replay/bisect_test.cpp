// X15: a replay that writes where it must not, and is told of it who knows where: the search names
// the work, in processes of its own. How programs end is shown by scripts, which write the list of
// what they replayed themselves.
#include "reprise/replay/bisect.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "reprise/tap/monitor.hpp"
#include "tests/replay/cases.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise::test {
namespace {

constexpr int kernels = 64, bad_kernel = 37;

class bisect_victim : public replay_case {
 protected:
  // A finding, a signal that takes the process along (which a sanitizer would catch), or a lost
  // device.
  static std::int64_t outside() {
    if (GetParam().starts_with("cuda")) return std::int64_t{1} << 40;
    const bool by_signal = GetParam() == "sim:seed=2" && !sanitized;
    return by_signal ? std::int64_t{1} << 30 : 5;
  }

  // `eye` watches; every call has another set on.
  void run(monitor* eye) {
    signature declared{"victim"};
    const auto where = declared.in<std::int64_t>("where", {any});
    const auto y = declared.out<float>("y");
    const step what{declared, [&](step_scope& run) {
                      const view<float> x = run.make(y, dims{4});
                      fill(run, write<float>{x}, 0.0F);
                      const view<float> aside = run.scratch<float>(dims{4});
                      for (int i = 0; i < kernels; ++i) {
                        if (i % 16 == 0) run.mark({"x", i / 16}, as_tensor(x, dims{4}));
                        if (i == bad_kernel) {
                          launch(run, reach, read(run[where]), inout<float>{x});
                        } else {
                          launch(run, scale_here, read<float>{x}, write<float>{aside},
                                 static_cast<float>(i));
                        }
                      }
                    }};
    replay_cache cache{dev()};
    if (eye != nullptr) cache.observe(eye->observer());
    int calls = 0;
    const auto call = [&](std::span<const std::int64_t> at) {
      if (eye != nullptr) {
        eye->enable(point_set{"x:" + std::to_string(calls++ % 4)});
        eye->plan_step({});
      }
      cache.run(s(), what, {where.from_host(at)});
    };
    const std::int64_t two[] = {0, 0};
    for (int i = 0; i < 3; ++i) call(two);
    for (const std::int64_t at : {std::int64_t{0}, std::int64_t{3}, outside()}) {
      call(std::span{&at, 1});
    }
    s().synchronize();  // which is far from what failed
  }

  void run_watched(toggle_mode mode) {
    monitor_options how;
    how.switch_by = mode;
    how.ring_bytes = 1U << 16;
    how.staging_bytes = 1U << 16;
    how.thread = false;
    monitor eye{dev(), how};
    eye.watch({"*", row_mode::all()});
    run(&eye);
  }
};
INSTANTIATE_TEST_SUITE_P(devices, bisect_victim, testing::ValuesIn(devices_under_test()),
                         [](const auto& p) { return test_name(p.param); });

// What the next tests run: 64 kernels in a row, of which number 37 goes where its input says. That
// is inside for three calls of one shape and two of another, of which the third goes far outside.
TEST_P(bisect_victim, DISABLED_writes_outside) {
  run(nullptr);
}
TEST_P(bisect_victim, DISABLED_writes_outside_in_a_twin) {
  run_watched(toggle_mode::variants);
}
TEST_P(bisect_victim, DISABLED_writes_outside_where_the_host_switches) {
  run_watched(toggle_mode::host_eager);
}
TEST_P(bisect_victim, DISABLED_writes_outside_where_the_device_switches) {
  run_watched(toggle_mode::device);
}

// Each call goes where the one before was told to, by a copy behind what goes there.
TEST_P(bisect_victim, DISABLED_writes_outside_since_the_call_before) {
  buffer<std::int64_t> held{desk.memory, 1, s()};
  upload(s(), {std::int64_t{0}}, held.all());
  signature declared{"victim"};
  const auto where = declared.in<std::int64_t>("where", {1});
  const auto y = declared.out<float>("y");
  declared.state("held", as_tensor(held.all()));
  const step what{declared, [&](step_scope& run) {
                    const view<float> x = run.make(y, dims{4});
                    fill(run, write<float>{x}, 0.0F);
                    launch(run, reach, read<std::int64_t>{held.all()}, inout<float>{x});
                    copy(run, read(run[where]), write<std::int64_t>{held.all()});
                  }};
  replay_cache cache{dev()};
  for (const std::int64_t at : {std::int64_t{0}, outside(), std::int64_t{0}}) {
    cache.run(s(), what, {where.from_host(std::span{&at, 1})});
  }
  s().synchronize();
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
  how.on_run = [&](const bisect_run&) { ++runs; };
  const auto found = find_failing_work(
      victim("devices/bisect_victim.DISABLED_writes_outside/" + test_name(GetParam())), how);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, "victim");
  EXPECT_EQ(found->label, "test_reach");
  EXPECT_EQ(found->kind, "kernel");
  EXPECT_EQ(found->works, kernels + 2U) << "one brings the input, one fills";
  EXPECT_EQ(found->index, bad_kernel + 2U);
  EXPECT_EQ(found->replay, 6U) << "of the step, whichever recording it is of";
  EXPECT_FALSE(found->message.empty());
  EXPECT_EQ(found->runs, runs);
  EXPECT_LE(found->runs, 1 + 7) << "all of it once, then halves";
}

// What a monitor has switched off, or on in another executable, stays as the search has it.
TEST_P(bisect, names_the_work_where_a_monitor_switches_others_of_the_graph) {
  if (GetParam() == "cpu") GTEST_SKIP() << "it looks at no accesses";
  for (const char* const test : {"in_a_twin", "where_the_host_switches"}) {
    SCOPED_TRACE(test);
    const auto found = find_failing_work(victim("devices/bisect_victim.DISABLED_writes_outside_" +
                                                std::string{test} + "/" + test_name(GetParam())));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->label, "test_reach");
    EXPECT_EQ(found->replay, 6U);
    EXPECT_GT(found->works, kernels + 2U) << "producers are works too";
  }
}

// Were they cut too, the last work would be named: without it nothing is ever told to go outside.
TEST_P(bisect, leaves_the_replays_before_whole) {
  if (GetParam() == "cpu") GTEST_SKIP() << "it looks at no accesses";
  const auto found = find_failing_work(
      victim("devices/bisect_victim.DISABLED_writes_outside_since_the_call_before/" +
             test_name(GetParam())));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->label, "test_reach");
  EXPECT_EQ(found->replay, 3U);
}

TEST_P(bisect, says_by_name_which_graph_cannot_be_cut) {
  if (GetParam() == "cpu") GTEST_SKIP() << "it looks at no accesses";
  const std::string said = message_of<usage_error>([] {
    (void)find_failing_work(
        victim("devices/bisect_victim.DISABLED_writes_outside_where_the_device_switches/" +
               test_name(GetParam())));
  });
  EXPECT_TRUE(has(said, "replay 6 of step 'victim' fails, and its graph cannot be cut")) << said;
}

class bisect_of_scripts : public testing::Test {
 protected:
  bisect_of_scripts() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~bisect_of_scripts() override { std::filesystem::remove_all(folder); }

  // $works is how many are on, or all; `works_of_s`, `begins` and `passes` are words of its own.
  static std::vector<std::string> script(const std::string& text) {
    return {"sh", "-c",
            R"(list() { printf "$@" >>"$REPRISE_BISECT_LIST"; }
works=${REPRISE_BISECT%%:*}
works_of_s() {
  list 'work\t1\t0\tfill\tfirst\ts\nwork\t1\t1\tkernel\tsecond\ts\nrecording\t1\t2\tswitched\ts\n'
}
begins() { list 'replay\t%s\t1\ts\n' "$1"; }
passes() { list 'passed\t%s\ts\n' "$1"; }
fails() { list 'failed\t%s\n' "$1"; exit 97; }
)" + text};
  }
  std::string refusal(const std::vector<std::string>& program, int seconds = 120) {
    endings.clear();
    bisect_options how;
    how.seconds = seconds;
    how.on_run = [this](const bisect_run& one) { endings.push_back(one.ended); };
    return message_of<usage_error>([&] { (void)find_failing_work(program, how); });
  }
  std::string first_line(const char* file) const {
    std::string line;
    std::getline(std::ifstream{folder / file}, line);
    return line;
  }
  // One that nobody has waited for yet is over too.
  static bool is_over(const std::string& process) {
    std::ifstream status{"/proc/" + process + "/stat"};
    std::string number, name, state;
    status >> number >> name >> state;
    return state.empty() || state == "Z";
  }
  static bool comes_true(const std::function<bool()>& what) {
    for (int i = 0; i < 2000 && !what(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return what();
  }

  std::filesystem::path folder =
      std::filesystem::path{testing::TempDir()} / ("reprise-scripts-" + std::to_string(getpid()));
  std::vector<bisect_ending> endings;
};

TEST_F(bisect_of_scripts, that_cannot_be_searched_says_what_it_ended_with) {
  EXPECT_TRUE(has(refusal({}), "give one"));
  EXPECT_TRUE(has(refusal({"/nowhere/at all"}), "/nowhere/at all"));
  EXPECT_TRUE(has(refusal({"false"}), "'false' ended with 1 and no replay of it failed"));
  EXPECT_EQ(endings, std::vector{bisect_ending::elsewhere});
  EXPECT_TRUE(has(refusal({"true"}), "no step of 'true' replayed"));
  EXPECT_EQ(endings, std::vector{bisect_ending::elsewhere});
  EXPECT_TRUE(has(refusal(script("works_of_s; begins 1; passes 1; exit 3")), "ended with 3"));
  const std::string late = refusal({"sleep", "20"}, 1);
  EXPECT_TRUE(has(late, "was not done after 1 s"));
  EXPECT_TRUE(has(late, "no replay of it was under way"));
}

TEST_F(bisect_of_scripts, finds_nothing_only_where_replays_were_seen_and_none_failed) {
  bisect_options how;
  how.on_run = [this](const bisect_run& one) { endings.push_back(one.ended); };
  EXPECT_FALSE(find_failing_work(script("works_of_s; begins 1; passes 1"), how).has_value());
  EXPECT_EQ(endings, std::vector{bisect_ending::outlived});
}

TEST_F(bisect_of_scripts, blames_no_replay_that_was_waited_for) {
  const std::string said = refusal(script("works_of_s; begins 1; passes 1; kill -SEGV $$"));
  EXPECT_TRUE(has(said, "was ended by signal 11")) << said;
  EXPECT_TRUE(has(said, "no replay of it was under way")) << said;
  EXPECT_EQ(endings.size(), 1U);
}

TEST_F(bisect_of_scripts, tries_no_works_before_it_names_the_first) {
  const std::string said = refusal(script("works_of_s; begins 1; kill -KILL $$"));
  EXPECT_TRUE(has(said, "fails with nothing on too, so it is none of the graph's works")) << said;
  EXPECT_EQ(endings.size(), 3U) << "all, one, none";
  const auto found = find_failing_work(
      script("works_of_s; begins 1; [ $works = 0 ] && exit 96; kill -KILL $$"), {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->index, 0U);
  EXPECT_EQ(found->label, "first");
  EXPECT_TRUE(has(found->message, "was ended by signal 9"));
  EXPECT_EQ(found->runs, 3);
}

TEST_F(bisect_of_scripts, knows_which_of_two_replays_at_once_was_passed) {
  const std::string said =
      refusal(script("works_of_s; begins 1; list 'replay\\t1\\t1\\tother\\n'\n"
                     "list 'passed\\t1\\tother\\n'; kill -KILL $$"));
  EXPECT_TRUE(has(said, "replay 1 of step 's' fails with nothing on too")) << said;
}

TEST_F(bisect_of_scripts, takes_no_other_death_for_that_of_the_replay) {
  const std::string said = refusal(
      script("works_of_s; begins 1; [ $works = all ] && passes 1 && begins 2; kill -KILL $$"));
  EXPECT_TRUE(has(said, "without replay 2 of step 's'")) << said;
}

TEST_F(bisect_of_scripts, has_a_word_for_reads_of_what_works_that_are_off_would_have_written) {
  const std::string said =
      refusal(script("works_of_s; begins 1; [ $works = all ] && fails 'out of bounds'\n"
                     "fails 'the simulator found a fault, unwritten read: at x'"));
  EXPECT_TRUE(has(said, "stopped by another fault")) << said;
  EXPECT_EQ(endings, (std::vector{bisect_ending::failed, bisect_ending::unwritten}));
  // Where that is the fault itself, it is what the search looks for.
  EXPECT_TRUE(has(refusal(script("works_of_s; begins 1; fails 'unwritten read: at x'")),
                  "none of the graph's works"));
}

TEST_F(bisect_of_scripts, names_a_graph_that_cannot_be_cut) {
  const std::string said =
      refusal(script("list 'recording\\t1\\t2\\tdriven\\ts\\n'; begins 1; fails 'lost'"));
  EXPECT_TRUE(has(said, "step 's' fails, and its graph cannot be cut")) << said;
}

TEST_F(bisect_of_scripts, ends_all_that_a_run_has_started) {
  const std::string file = (folder / "started").string();
  EXPECT_TRUE(has(refusal(script("sleep 60 & echo $! >" + file + "; wait"), 1), "not done after"));
  EXPECT_TRUE(comes_true([&] { return is_over(first_line("started")); }));
}

TEST_F(bisect_of_scripts, a_signal_ends_the_search_and_what_it_runs_and_leaves_no_file) {
  const std::string file = (folder / "started").string();
  std::filesystem::create_directories(folder / "tmp");
  const pid_t searches = fork();
  if (searches == 0) {
    setenv("TMPDIR", (folder / "tmp").c_str(), 1);
    try {
      (void)find_failing_work(script("sleep 60 & echo $! >" + file + "; wait"));
    } catch (...) {
    }
    std::_Exit(0);
  }
  EXPECT_TRUE(comes_true([&] { return !first_line("started").empty(); }));
  EXPECT_FALSE(std::filesystem::is_empty(folder / "tmp"));
  kill(searches, SIGTERM);
  int status = 0;
  waitpid(searches, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "tmp"));
  EXPECT_TRUE(comes_true([&] { return is_over(first_line("started")); }));
}

}  // namespace
}  // namespace reprise::test
