// Recording is all or nothing: whatever fails, bytes, state and streams are as before, and the step
// has run once, eagerly, with the reason.
#include <functional>

#include "reprise/device/faulty.hpp"
#include "reprise/device/slab_store.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/replay/support.hpp"

namespace reprise {
namespace {

class transaction_test : public ::testing::Test {
 protected:
  transaction_test() {
    set_log_sink([this](std::string_view line) { log.emplace_back(line); });
  }
  ~transaction_test() override { set_log_sink({}); }

  static device open_faulty(const std::shared_ptr<fault_plan>& plan) {
    auto implementation = faulty(sim::open_cpu(1), plan);
    auto table = resolve_kernels(builtin_kernels(), implementation->traits());
    return device{std::move(implementation), std::move(table)};
  }

  static std::size_t leased(const device& of) {
    return device_ref{of}.state().slabs->leased_bytes();
  }

  std::vector<std::string> log;
  std::vector<float> ones{1, 1, 1};
};

// The n-th call of the first run fails, for every n until none does; cases_transaction_test.cpp
// walks steps with breaks, and through a cache.
TEST_F(transaction_test, a_failure_at_any_call_leaves_no_trace_and_the_step_runs_once) {
  int failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 200U) << "the walk over all calls does not end";
    SCOPED_TRACE("call " + std::to_string(n));
    const auto plan = std::make_shared<fault_plan>();
    const device faulted = open_faulty(plan);
    stream work{faulted};
    pool memory{faulted, "test"};
    test::adding adder{memory, work, 3};
    const step what = adder.make();
    eager_runner eager{faulted};
    // The eager fallback has run before, so that its memory is there and is not taken for the
    // recording's.
    for (int i = 0; i < 4; ++i) eager.run(work, what, {adder.x.from_host(ones)}, {}, nullptr);
    recorder maker{faulted, eager};
    const std::size_t bytes = leased(faulted);
    const std::size_t pinned = device_ref{faulted}.pinned_bytes();

    plan->fail_call(n);
    std::optional<recorded> done;
    try {
      done = maker.record(work, what, {adder.x.from_host(ones)});
    } catch (const device_error&) {
      // The fault struck in the eager run itself: the caller's own error. Nothing of a recording
      // may be left either.
    }
    const bool fired = plan->fired();
    plan->fail_call(0);
    if (!fired) {
      ASSERT_TRUE(done && done->made);
      break;
    }
    ASSERT_TRUE(done.has_value()) << "one fault, and the eager run after it must succeed";
    EXPECT_EQ(test::read_back<float>(work, adder.total.all()), (std::vector<float>{5, 5, 5}))
        << "four runs of the fallback before, one of the step";
    EXPECT_FALSE(stream_ref{work}.capturing());
    if (done->made) {
      // It struck where memory is given back, which is tried again: the recording is whole.
      EXPECT_EQ(done->first.how, ran::captured);
      done.reset();
    } else {
      ++failures;
      EXPECT_EQ(done->first.how, ran::eager);
      EXPECT_EQ(done->first.why->rule, "capture failed");
      EXPECT_NE(done->first.why->text().find("injected fault"), std::string::npos)
          << done->first.why->text();
    }
    EXPECT_EQ(leased(faulted), bytes);
    EXPECT_EQ(device_ref{faulted}.pinned_bytes(), pinned);

    // The next call records.
    const recorded again = maker.record(work, what, {adder.x.from_host(ones)});
    EXPECT_TRUE(again.made.has_value());
    EXPECT_EQ(test::read_back<float>(work, adder.total.all()), (std::vector<float>{6, 6, 6}));
  }
  EXPECT_GT(failures, 15) << "the transaction has more calls than that";
}

class transaction_on : public transaction_test, public ::testing::WithParamInterface<std::string> {
 protected:
  test::bench on{GetParam()};
  eager_runner eager{on.opened};
  recorder maker{on.opened, eager};
};

INSTANTIATE_TEST_SUITE_P(devices, transaction_on, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(transaction_on, an_error_of_the_steps_own_reaches_the_caller_unchanged) {
  signature declared{"throwing"};
  const auto x = declared.in<float>("x", {any});
  const step what{declared, [](step_scope&) { throw std::range_error{"the user's own"}; }};
  try {
    maker.record(on.work, what, {x.from_host(ones)});
    FAIL() << "the error was swallowed";
  } catch (const std::range_error& own) {
    EXPECT_STREQ(own.what(), "the user's own");
  }
  EXPECT_FALSE(stream_ref{on.work}.capturing());
}

TEST_P(transaction_on, a_step_that_fails_only_in_the_capture_runs_eagerly_with_the_reason) {
  test::adding adder{on.memory, on.work, 3};
  signature declared{"synchronising"};
  const auto x = declared.in<float>("x", {any, 1});
  declared.state("total", as_tensor(adder.total.all()));
  buffer<float> one{on.memory, 1, on.work};
  test::upload(on.work, {1.0F}, one.all());
  const step what{declared, [&](step_scope& run) {
                    launch(run, matmul_add<float, float>, read(run[x]), read(one),
                           inout(adder.total), 1, 1);
                    stream_ref{run}.synchronize();
                  }};
  const recorded done = maker.record(on.work, what, {x.from_host(ones)});
  EXPECT_FALSE(done.made.has_value());
  EXPECT_EQ(done.first.why->rule, "capture failed");
  EXPECT_EQ(done.first.why->breaches[0].fact, "capture");
  EXPECT_NE(done.first.why->text().find("synchronize"), std::string::npos);
  EXPECT_EQ(test::read_back<float>(on.work, adder.total.all()), (std::vector<float>{1, 1, 1}));
}

TEST_P(transaction_on, a_write_that_nobody_named_is_refused_at_the_door_before_it_happens) {
  buffer<std::uint8_t> foreign{on.memory, 4, on.work};
  fill(on.work, write(foreign), std::uint8_t{7});
  int runs = 0;
  signature declared{"straying"};
  const auto x = declared.in<float>("x", {any});
  const step what{declared, [&](step_scope& run) {
                    ++runs;
                    fill(run, write(foreign), std::uint8_t{9});
                  }};
  const recorded done = maker.record(on.work, what, {x.from_host(ones)});
  EXPECT_FALSE(done.made.has_value());
  EXPECT_NE(done.first.why->text().find("fill 'fill' writes 4 bytes that outlive the step"),
            std::string::npos)
      << done.first.why->text();
  EXPECT_EQ(runs, 2) << "the refused warm-up, then the eager run";
  EXPECT_EQ(test::read_back<std::uint8_t>(on.work, foreign.all())[0], 9) << "it ran eagerly";
}

// The remedy of that refusal, executed.
TEST_P(transaction_on, naming_the_write_makes_the_step_recordable) {
  buffer<std::uint8_t> foreign{on.memory, 4, on.work};
  signature declared{"named"};
  const auto x = declared.in<float>("x", {any});
  declared.overwrites("foreign", as_tensor(foreign.all()));
  const step what{declared, [&](step_scope& run) { fill(run, write(foreign), std::uint8_t{9}); }};
  EXPECT_TRUE(maker.record(on.work, what, {x.from_host(ones)}).made.has_value());
}

TEST_P(transaction_on, a_body_that_asks_for_more_memory_in_the_capture_is_refused) {
  int runs = 0;
  signature declared{"greedy"};
  const auto x = declared.in<float>("x", {any});
  const step what{declared, [&](step_scope& run) {
                    ++runs;
                    (void)run.scratch<float>({runs == 2 ? 1000 : 1});
                  }};
  const recorded done = maker.record(on.work, what, {x.from_host(ones)});
  EXPECT_FALSE(done.made.has_value());
  EXPECT_NE(done.first.why->text().find("more memory than in its warm-up"), std::string::npos);
}

TEST_P(transaction_on, a_body_that_draws_fewer_random_numbers_in_the_capture_is_refused) {
  philox_counter counter{1};
  int runs = 0;
  signature declared{"drawing"};
  declared.random(counter);
  const step what{declared, [&](step_scope& run) { (void)run.draws(++runs == 2 ? 1 : 3); }};
  const recorded done = maker.record(on.work, what, {});
  ASSERT_FALSE(done.made.has_value());
  EXPECT_NE(done.first.why->text().find("drew 3 random numbers in its warm-up and 1 now"),
            std::string::npos)
      << done.first.why->text();
  EXPECT_EQ(counter.next(), 3U) << "of the eager run alone";
}

TEST_P(transaction_on, an_output_left_out_is_the_callers_error) {
  signature declared{"forgetful"};
  const auto x = declared.in<float>("x", {any});
  (void)declared.out<float>("y");
  const step what{declared, [](step_scope&) {}};
  EXPECT_THROW(maker.record(on.work, what, {x.from_host(ones)}), usage_error);
}

TEST_P(transaction_on, a_thousand_failed_captures_leave_the_bytes_of_the_first_few) {
  signature declared{"failing"};
  const auto x = declared.in<float>("x", {any});
  int runs = 0;
  const step what{declared, [&](step_scope& run) {
                    (void)run.scratch<float>({1000});
                    if (++runs % 3 == 2) throw error{"only in the capture"};
                  }};
  std::size_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    const recorded done = maker.record(on.work, what, {x.from_host(ones)});
    ASSERT_FALSE(done.made.has_value());
    const std::size_t now = leased(on.opened) + device_ref{on.opened}.state().slabs->idle_bytes() +
                            device_ref{on.opened}.pinned_bytes();
    if (i == 4) bytes = now;  // the memory of the eager runs is there
    if (i > 4) {
      ASSERT_EQ(now, bytes) << "after " << i;
    }
  }
}

}  // namespace
}  // namespace reprise
