// Re-runs: a trace of any device, made again on the simulated one, gives the same calls; and one of
// a program that lets handles or memory go too early is found out.
#include "reprise/trace/rerun.hpp"

#include <algorithm>
#include <random>

#include "reprise/device/faulty.hpp"
#include "reprise/device/forwarding.hpp"
#include "reprise/device/host_thread.hpp"
#include "tests/trace/trace_support.hpp"

namespace reprise::test {
namespace {

class rerun_of : public testing::TestWithParam<std::string> {};

TEST_P(rerun_of, a_captured_fork_gives_the_same_counts_and_no_difference) {
  const traced_program first = run_traced(GetParam(), forked_program);
  const auto counts = std::make_shared<call_counts>();
  const auto again = counting(open_bare("cpu"), counts);
  const rerun_report report = rerun(first.taken, *again);
  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(report.calls, first.taken.calls.size());
  EXPECT_EQ(values_of(*counts), first.counts);
}

// But for lines and threads, which are those of the re-run.
TEST_P(rerun_of, a_trace_has_that_trace) {
  trace first = trace_of(GetParam(), forked_program);
  const auto log = std::make_shared<trace_log>();
  const auto again = tracing(open_bare("cpu"), log);
  (void)rerun(first, *again);
  trace second = log->so_far();
  for (trace* one : {&first, &second}) {
    one->device.clear();
    one->bodies = device_kind::cpu;
    for (traced_call& call : one->calls) call.at = {};
  }
  EXPECT_EQ(trace_text(second), trace_text(first));
}

TEST_P(rerun_of, questions_about_places_has_the_same_answers) {
  const trace first = trace_of(GetParam(), placed_program);
  const auto cpu = open_bare("cpu");
  EXPECT_EQ(rerun(first, *cpu).text(), "");
}

TEST_P(rerun_of, calls_that_threads_made_is_made_on_one) {
  const traced_program first = run_traced(GetParam(), [](device_ref on) {
    const auto work = [&] {
      const stream s{on};
      pool memory{on};
      const buffer<int> x{memory, 64, s};
      const graph made = capture(s, [&](stream_ref c) { fill(c, write<int>{x}, 1); });
      made.instantiate(s).launch(s);
      s.synchronize();
    };
    host_thread other{on, work};
    work();
    other.join();
  });
  const auto counts = std::make_shared<call_counts>();
  const auto again = counting(open_bare("cpu"), counts);
  EXPECT_EQ(rerun(first.taken, *again).text(), "");
  EXPECT_EQ(values_of(*counts), first.counts);
}

INSTANTIATE_TEST_SUITE_P(devices, rerun_of, each_device(), device_of);

rerun_report rerun_on_cpu(const trace& what, const rerun_options& options = {}) {
  const auto cpu = open_bare("cpu");
  return rerun(what, *cpu, options);
}

// Looks at memory as work leaves it.
class looking final : public forwarding_device {
 public:
  using forwarding_device::forwarding_device;
  node_id submit(stream_id stream, const work& what) override {
    const node_id made = inner().submit(stream, what);
    for (const access& one : what.accesses) {
      const auto* const bytes = static_cast<const unsigned char*>(one.begin);
      const bool changed = std::any_of(bytes, bytes + one.bytes, [](auto b) { return b != 0; });
      seen.push_back(std::string{what.label} + (changed ? " changed" : " left"));
    }
    return made;
  }
  std::vector<std::string> seen;
};

TEST(rerun, bodies_write_what_was_written_and_nothing_else) {
  // Host memory of a re-run begins as zeros.
  const trace written = hand_written(
      "t1 create_stream stream=1\n"
      "t1 submit stream=1 work=kernel label=\"kernel\" reads=host1+0:64 writes=host2+32:32 "
      "reads=host2+0:32 reads=host2+64:8 node=0\n"
      "t1 submit stream=1 work=host_call label=\"call\" reads=host3+0:64 writes=host4+0:1 node=0\n"
      "t1 submit stream=1 work=external label=\"library\" writes=host5+0:64 reads=host6+0:1 "
      "node=0\n");
  looking device{open_bare("cpu")};
  EXPECT_EQ(rerun(written, device).text(), "");
  const std::vector<std::string> expected{"kernel left",     "kernel changed", "kernel left",
                                          "kernel left",     "call left",      "call changed",
                                          "library changed", "library left"};
  EXPECT_EQ(device.seen, expected);
}

struct wrong_program {
  std::string calls;
  difference_kind kind;
  std::size_t call;
  std::string says;
};

const std::string opening =
    "t1 create_stream stream=1\n"
    "t1 create_event event=1\n"
    "t1 allocate memory=device bytes=256 block=1\n";
const std::string captured =
    "t1 begin_capture stream=1\n"
    "t1 submit stream=1 work=fill label=\"fill\" to=block1+0:256 pattern=4 "
    "writes=block1+0:256 node=1\n"
    "t1 end_capture stream=1 made=1\n"
    "t1 instantiate executable=1 graph=1 stream=1\n";

TEST(rerun, finds_what_is_used_after_its_end) {
  const wrong_program all[] = {
      {opening + "t1 destroy_event event=1\n"
                 "t1 submit stream=1 work=event_wait label=\"event wait\" event=1 node=0 "
                 "at=\"user.cpp\":12\n",
       difference_kind::dead_handle, 5,
       "submit event wait \"event wait\" at user.cpp:12: event 1 was destroyed by call 4"},
      {opening + "t1 destroy_stream stream=1\nt1 synchronize_stream stream=1\n",
       difference_kind::dead_handle, 5, "stream 1 was destroyed by call 4"},
      {opening + "t1 destroy_stream stream=1\nt1 destroy_stream stream=1\n",
       difference_kind::dead_handle, 5, "stream 1 was destroyed by call 4"},
      {opening + "t1 synchronize_event event=2\n", difference_kind::dead_handle, 4,
       "event 2 was never made"},
      {opening + captured + "t1 destroy_graph graph=1\nt1 nodes graph=1 count=1\n",
       difference_kind::dead_handle, 9, "graph 1 was destroyed by call 8"},
      {opening + captured + "t1 destroy_executable executable=1\n" +
           "t1 launch executable=1 stream=1\n",
       difference_kind::dead_handle, 9, "executable 1 was destroyed by call 8"},
      {opening + captured + "t1 release memory=device block=1\n" +
           "t1 launch executable=1 stream=1 at=\"user.cpp\":40\n",
       difference_kind::dead_memory, 9,
       "launch at user.cpp:40: block 1 was released by call 8; release it after its last use; it "
       "is left out here"},
      {opening + "t1 release memory=device block=1\n"
                 "t1 submit stream=1 work=kernel label=\"late\" reads=block1+0:4 node=0\n",
       difference_kind::dead_memory, 5, "block 1 was released by call 4"},
      {opening + "t1 release memory=device block=1\nt1 release memory=device block=1\n",
       difference_kind::dead_memory, 5, "block 1 was released by call 4 already"},
      {opening + "t1 release memory=pinned block=1\n", difference_kind::dead_memory, 4,
       "the kind of memory that it is not"},
      {opening + "t1 submit stream=1 work=kernel label=\"far\" writes=block1+200:57 node=0\n",
       difference_kind::beyond_memory, 4, "57 bytes from 200 reach past the end of block 1"},
  };
  for (const wrong_program& wrong : all) {
    const rerun_report report = rerun_on_cpu(hand_written(wrong.calls));
    ASSERT_EQ(report.differences.size(), 1U) << wrong.says << '\n' << report.text();
    const difference& found = report.differences[0];
    EXPECT_EQ(found.kind, wrong.kind) << found.text;
    EXPECT_EQ(found.call, wrong.call) << found.text;
    EXPECT_TRUE(has(found.text, wrong.says)) << found.text;
  }
}

TEST(rerun, lets_a_released_block_be_while_its_node_is_off_or_points_elsewhere) {
  const std::string other = "t1 allocate memory=device bytes=256 block=2\n";
  const std::string freed = "t1 release memory=device block=1\n";
  const std::string launch = "t1 launch executable=1 stream=1\n";
  const std::string off = "t1 enable executable=1 node=1 on=no\n";
  const std::string on = "t1 enable executable=1 node=1 on=yes\n";
  const std::string elsewhere =
      "t1 set_parameters executable=1 work=fill label=\"fill\" to=block2+0:256 pattern=4 "
      "writes=block2+0:256 node=1\n";
  const auto found = [&](const std::string& rest) {
    return rerun_on_cpu(hand_written(opening + other + captured + rest)).text();
  };
  EXPECT_EQ(found(off + freed + launch), "");
  EXPECT_EQ(found(elsewhere + freed + launch), "");
  EXPECT_EQ(found(off + freed + launch + elsewhere + on + launch), "");
  EXPECT_TRUE(has(found(off + freed + launch + on + launch), "block 1 was released"));
  EXPECT_TRUE(has(found(launch + freed + launch), "call 11, dead memory: launch"));
}

TEST(rerun, stands_in_for_a_stream_that_was_borrowed) {
  const rerun_report report = rerun_on_cpu(
      hand_written("t1 create_event event=1\n"
                   "t1 submit stream=1 work=event_record label=\"event record\" event=1 node=0\n"
                   "t1 synchronize_stream stream=1\n"
                   "t1 destroy_event event=1\n"));
  EXPECT_EQ(report.text(), "");
  EXPECT_EQ(report.calls, 4U);
}

TEST(rerun, finds_a_call_that_cannot_be_made_there) {
  const rerun_report report = rerun_on_cpu(
      hand_written(opening + "t1 begin_capture stream=1\nt1 synchronize_stream stream=1\n"));
  ASSERT_EQ(report.differences.size(), 1U) << report.text();
  EXPECT_EQ(report.differences[0].kind, difference_kind::fails_now);
  EXPECT_TRUE(has(report.text(), "call 5, fails now: synchronize_stream: fails with capture_error"))
      << report.text();
}

TEST(rerun, expects_the_failures_of_the_trace_or_leaves_them_out) {
  const auto plan = std::make_shared<fault_plan>();
  const auto log = std::make_shared<trace_log>();
  {
    const auto traced = tracing(faulty(open_bare("cpu"), plan), log);
    const auto here = std::source_location::current();
    const stream_id s = traced->create_stream(stream_priority::usual, here);
    plan->fail_call(1);
    EXPECT_THROW((void)traced->create_event(here), device_error);
    plan->fail_call(1);
    EXPECT_THROW(traced->begin_capture(s, here), capture_error);
    plan->fail_call(1);
    EXPECT_THROW((void)traced->allocate(memory_kind::device, 64, here), out_of_memory);
    traced->synchronize(s, here);
    traced->destroy(s);
  }
  const rerun_report expecting = rerun_on_cpu(log->so_far());
  ASSERT_EQ(expecting.differences.size(), 3U) << expecting.text();
  for (const difference& one : expecting.differences) {
    EXPECT_EQ(one.kind, difference_kind::succeeds_now) << one.text;
  }
  const rerun_report without = rerun_on_cpu(log->so_far(), {.failed = failed_calls::leave_out});
  EXPECT_EQ(without.text(), "");
  EXPECT_EQ(without.calls, 3U);
}

TEST(rerun, finds_another_failure_and_another_answer) {
  const rerun_report report =
      rerun_on_cpu(hand_written(opening + "t1 end_capture stream=1 made=0 failed=out_of_memory\n" +
                                "t1 capturing stream=1 answer=yes\n"));
  ASSERT_EQ(report.differences.size(), 2U) << report.text();
  EXPECT_EQ(report.differences[0].kind, difference_kind::fails_otherwise);
  EXPECT_EQ(report.differences[1].kind, difference_kind::answers_otherwise);
}

TEST(rerun, holds_no_more_memory_than_it_was_given) {
  const trace large = hand_written(
      "t1 allocate memory=device bytes=4096 block=1\n"
      "t1 release memory=device block=1\n"
      "t1 allocate memory=device bytes=4096 block=2\n"
      "t1 allocate memory=device bytes=18446744073709551615 block=3\n");
  const rerun_report report = rerun_on_cpu(large, {.most_bytes = 4096});
  ASSERT_EQ(report.differences.size(), 1U) << report.text();
  EXPECT_EQ(report.differences[0].call, 4U);
  EXPECT_TRUE(has(report.text(), "rerun_options::most_bytes")) << report.text();
}

TEST(rerun, closes_what_the_trace_left_open) {
  const auto log = std::make_shared<trace_log>();
  const auto cpu = tracing(open_bare("cpu"), log);
  (void)rerun(hand_written(opening + captured + "t1 create_stream stream=2\n" +
                           "t1 begin_capture stream=2\n"),
              *cpu);
  const std::string made = trace_text(log->so_far());
  EXPECT_EQ(times(made, " abandon_capture "), 1U);
  EXPECT_EQ(times(made, " destroy_executable "), 1U);
  EXPECT_EQ(times(made, " destroy_graph "), 1U);
  EXPECT_EQ(times(made, " destroy_event "), 1U);
  EXPECT_EQ(times(made, " destroy_stream "), 2U);
  EXPECT_EQ(times(made, " release "), 1U);
}

class with_cuda_bodies final : public forwarding_device {
 public:
  explicit with_cuda_bodies(std::unique_ptr<device_api> inner)
      : forwarding_device{std::move(inner)}, traits_{forwarding_device::traits()} {
    traits_.name = "cuda:7";
    traits_.bodies = device_kind::cuda;
  }
  const device_traits& traits() const override { return traits_; }

 private:
  device_traits traits_;
};

TEST(rerun, is_refused_on_a_device_that_runs_no_cpu_bodies) {
  with_cuda_bodies card{open_bare("cpu")};
  EXPECT_TRUE(has(message_of<usage_error>([&] { (void)rerun({}, card); }), "cuda:7"));
}

// A trace of any content can be made again: every call is made, refused or reported.
TEST(rerun, of_any_trace_ends) {
  const std::string text = trace_text(trace_of("cpu", forked_program));
  std::mt19937 random{11};
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>{0, n - 1}(random);
  };
  int made = 0;
  for (int i = 0; i < 1000; ++i) {
    trace changed = parse_trace(text);
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      auto& calls = changed.calls;
      const std::size_t at = below(calls.size());
      switch (below(3)) {
        case 0: calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 1: std::swap(calls[at], calls[below(calls.size())]); break;
        default:
          calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(at), calls[below(calls.size())]);
      }
    }
    std::string digits = trace_text(changed);
    for (std::size_t changes = below(4); changes > 0; --changes) {
      char& c = digits[digits.find("device") + below(digits.size() - 20)];
      if (c >= '0' && c <= '9') c = static_cast<char>('0' + below(10));
    }
    try {
      changed = parse_trace(digits);
    } catch (const usage_error&) {
      continue;
    }
    (void)rerun_on_cpu(changed, {.most_bytes = 1 << 20});
    ++made;
  }
  EXPECT_GT(made, 250);
}

}  // namespace
}  // namespace reprise::test
