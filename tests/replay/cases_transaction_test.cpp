// The field's cases about recording as one transaction: whatever fails, the step has run once.
#include "reprise/device/faulty.hpp"
#include "reprise/device/slab_store.hpp"
#include "tests/replay/cases.hpp"

namespace reprise::test {
namespace {

class transaction_cases : public replay_case {
 protected:
  replay_cache cache{dev()};
  floats ones{1, 1, 1};
};

REPRISE_ON_EACH_DEVICE(transaction_cases);

TEST_P(transaction_cases, R6_scratch_of_the_run_is_the_recordings_own) {
  signature declared{"scratching"};
  const auto x = declared.in<float>("x", {any});
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const view<float> half_way = run.scratch<float>(run.shape(x));
                    launch(run, scale_here, read(run[x]), write(half_way), 3.0F);
                    launch(run, scale_here, read<float>{view<const float>{half_way}},
                           write(run.make(y, run.shape(x))), 2.0F);
                  }};
  EXPECT_EQ(cache.run(s(), what, {x.from_host(ones)}).how, ran::captured);
  std::vector<buffer<float>> others;
  for (int i = 0; i < 20; ++i) others.push_back(desk.filled(floats(3, 9.0F)));
  const step_result done = cache.run(s(), what, {x.from_host(ones)});
  EXPECT_EQ(done.how, ran::replayed);
  EXPECT_EQ(desk.values_of(done[y].get()), times(6, ones));
  for (const buffer<float>& each : others) EXPECT_EQ(desk.values_of(each), floats(3, 9.0F));
}

TEST_P(transaction_cases, R6_scratch_from_elsewhere_is_refused_by_the_name_of_who_writes_it) {
  signature declared{"scratching"};
  const auto x = declared.in<float>("x", {any});
  const auto y = declared.out<float>("y");
  pool elsewhere{dev(), "per call"};
  const step what{declared, [&](step_scope& run) {
                    const buffer<float> half_way{elsewhere, 3, run};
                    launch(run, scale_here, read(run[x]), write(half_way), 3.0F);
                    launch(run, scale_here, read(half_way), write(run.make(y, run.shape(x))), 2.0F);
                  }};
  const step_result done = cache.run(s(), what, {x.from_host(ones)});
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_TRUE(has(done.why->text(), "kernel 'test_scale_here' writes 12 bytes"))
      << done.why->text();
  EXPECT_TRUE(has(done.why->text(), "use the run's scratch"));
  EXPECT_EQ(desk.values_of(done[y].get()), times(6, ones));
}

enum class shape_of_step { plain, with_a_break, debug };

// The n-th call of the first run fails, for every n until none does.
void walk_all_failures(const std::string& spec, shape_of_step shape) {
  int failures = 0;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 250U) << "the walk over all calls does not end";
    SCOPED_TRACE("call " + std::to_string(n));
    const reports quiet;  // a wait that fails while things are taken down
    const auto plan = std::make_shared<fault_plan>();
    case_desk at{spec, [&](auto bare) { return faulty(std::move(bare), plan); }};
    tally of{at, 3};
    if (shape != shape_of_step::plain) {
      of.between = [](step_scope& run) { run.eagerly("a pause", [](stream_ref) {}); };
    }
    const floats in{1, 2, 3};
    const buffer<float> to = at.filled(floats(3, 0.0F));
    byte_budget budget{std::size_t{1} << 30};
    const cache_options options{.debug = shape == shape_of_step::debug, .budget = &budget};
    replay_cache cache{at.opened, options};
    // The memory of eager runs is there, and is not taken for the recording's.
    const auto planned = std::make_shared<const reason>(reason{"planned", {}});
    for (int i = 0; i < 4; ++i) cache.run(at.work, of.what(), {of.x.from_host(in)}, planned);
    at.work.synchronize();
    const floats before = at.values_of(of.total);
    const auto run = [&] {
      return cache.run(at.work, of.what(), {of.x.from_host(in), of.sum.into(to.all())});
    };
    plan->fail_call(n);
    std::optional<step_result> done;
    try {
      done = run();
    } catch (const device_error&) {
      // It struck in what runs for real: the caller's own error.
    }
    const bool fired = plan->fired();
    plan->fail_call(0);
    const floats after = at.values_of(of.total);
    const floats once = [&] {
      floats sum = before;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += in[i];
      return sum;
    }();
    EXPECT_FALSE(stream_ref{at.work}.capturing());
    if (!fired) {
      ASSERT_TRUE(done && done->how == ran::captured);
      EXPECT_EQ(after, once);
      EXPECT_EQ(at.values_of(to), once);
      break;
    }
    if (done) {
      EXPECT_EQ(after, once) << "the step has run once";
      EXPECT_EQ(at.values_of(to), once);
      if (done->how == ran::eager) {
        ++failures;
        EXPECT_EQ(done->why->rule, "capture failed");
        EXPECT_TRUE(has(done->why->text(), "injected fault")) << done->why->text();
        EXPECT_EQ(cache.counts().eager_reasons.at("capture failed"), 1U);
        EXPECT_EQ(cache.recordings(), 0U);
        EXPECT_EQ(budget.held(), 0U);
      }
    } else {
      EXPECT_EQ(cache.recordings(), 0U);
      EXPECT_TRUE(after == before || after == once) << "neither not at all nor once";
    }
    // The next call records, or replays what was recorded.
    const step_result again = run();
    EXPECT_NE(again.how, ran::eager);
    floats twice = after;
    for (std::size_t i = 0; i < twice.size(); ++i) twice[i] += in[i];
    EXPECT_EQ(at.values_of(of.total), twice);
    EXPECT_EQ(cache.recordings(), 1U);
    EXPECT_EQ(budget.held(), cache.bytes().recordings);
  }
  if (shape != shape_of_step::debug) {
    EXPECT_GT(failures, 15) << "the transaction has more calls than that";
  }
}

TEST_P(transaction_cases, R14_a_failure_at_any_call_of_a_first_run_leaves_no_trace) {
  walk_all_failures(GetParam(), shape_of_step::plain);
}
TEST_P(transaction_cases, R14_a_failure_at_any_call_of_a_first_run_with_a_break_leaves_no_trace) {
  walk_all_failures(GetParam(), shape_of_step::with_a_break);
}
TEST_P(transaction_cases, R14_a_failure_at_any_call_of_a_debug_run_leaves_no_trace) {
  walk_all_failures(GetParam(), shape_of_step::debug);
}

// Of three kernels and a copy; the capture is spoiled behind each.
TEST_P(transaction_cases, R16_a_capture_that_is_invalidated_behind_any_node_runs_eagerly_once) {
  constexpr int nodes = 4;
  for (const bool with_a_break : {false, true}) {
    for (int spoiled = 1; spoiled <= nodes; ++spoiled) {
      SCOPED_TRACE(std::to_string(spoiled) + (with_a_break ? " with a break" : ""));
      const buffer<float> total = desk.filled({0, 0, 0});
      int made = 0;
      signature declared{"spoiled"};
      const auto x = declared.in<float>("x", {any});
      const auto y = declared.out<float>("y");
      declared.state("total", as_tensor(total.all()));
      const step what{declared, [&](step_scope& run) {
                        made = 0;
                        const auto node = [&] {
                          if (++made != spoiled || !stream_ref{run}.capturing()) return;
                          if (sim::controls* const sim = sim::controls_of(dev())) {
                            sim->spoil_capture(stream_ref{run}.id(), "another library's query");
                          } else {
                            try {
                              stream_ref{run}.synchronize();
                            } catch (const capture_error&) {
                              // As a library that swallows it.
                            }
                          }
                        };
                        for (int i = 0; i < 3; ++i) {
                          launch(run, add_to, read(run[x]), inout(total));
                          node();
                          if (i == 1 && with_a_break) run.eagerly("a pause", [](stream_ref) {});
                        }
                        copy(run, read(total), write(run.make(y, run.shape(x))));
                        node();
                      }};
      replay_cache own{dev()};
      const step_result done = own.run(s(), what, {x.from_host(ones)});
      EXPECT_EQ(done.how, ran::eager);
      EXPECT_EQ(done.why->rule, "capture failed");
      const bool simulated = sim::controls_of(dev()) != nullptr;
      EXPECT_TRUE(has(done.why->text(), simulated ? "another library's query" : "synchronize"))
          << done.why->text();
      EXPECT_EQ(own.counts().eager_reasons.at("capture failed"), 1U);
      EXPECT_EQ(desk.values_of(total), times(3, ones)) << "side effects once";
      EXPECT_EQ(desk.values_of(done[y].get()), times(3, ones));
      spoiled += nodes;  // the next one is let be
      EXPECT_EQ(own.run(s(), what, {x.from_host(ones)}).how, ran::captured);
      EXPECT_EQ(desk.values_of(total), times(6, ones));
      spoiled -= nodes;
    }
  }
}

TEST_P(transaction_cases, R17_three_warm_ups_a_capture_and_a_first_replay_add_once) {
  philox_counter counter{3, 10};
  tally of{desk, 3};
  of.declared.random(counter);
  const auto first = of.declared.in<float>("first", {1}, input_mode::direct);
  const auto second = of.declared.in<float>("second", {1}, input_mode::direct);
  int warm_ups = 0;
  of.between = [&](step_scope& run) {
    (void)run.draws(7);
    if (!stream_ref{run}.capturing()) ++warm_ups;
    // Each of them ends a warm-up: neither can be read at an address that moves.
    (void)run[first].data();
    (void)run[second].data();
  };
  const buffer<float> word = desk.filled({1});
  const step_result done =
      cache.run(s(), of.what(), {of.x.from_host(ones), first(word.all()), second(word.all())});
  EXPECT_EQ(done.how, ran::captured);
  EXPECT_EQ(warm_ups, 3);
  EXPECT_EQ(desk.values_of(of.total), ones);
  EXPECT_EQ(desk.values_of(done[of.sum].get()), ones);
  EXPECT_EQ(counter.next(), 17U);
}

TEST_P(transaction_cases, R17_a_warm_up_that_throws_has_changed_nothing) {
  philox_counter counter{3, 10};
  tally of{desk, 3};
  of.declared.random(counter);
  int runs = 0;
  of.between = [&](step_scope& run) {
    (void)run.draws(7);
    if (++runs == 1) throw std::runtime_error{"the first one only"};
  };
  const step_result done = cache.run(s(), of.what(), {of.x.from_host(ones)});
  EXPECT_EQ(done.how, ran::eager);
  EXPECT_TRUE(has(done.why->text(), "warm-up")) << done.why->text();
  EXPECT_EQ(desk.values_of(of.total), ones);
  EXPECT_EQ(counter.next(), 17U);
}

TEST_P(transaction_cases, R23_what_a_recording_does_first_comes_behind_its_warm_up) {
  sim::controls* const sim = sim::controls_of(dev());
  tally of{desk, 3};
  bool slowed = false;
  of.before = [&](step_scope& run) {
    if (sim != nullptr && !slowed) sim->slow(stream_ref{run}.id(), 50);
    slowed = true;
  };
  const buffer<float> in = desk.filled(ones);
  const step_result done = cache.run(s(), of.what(), {of.x(in.all())});
  EXPECT_EQ(done.how, ran::captured);
  EXPECT_EQ(desk.values_of(done[of.sum].get()), ones);
  EXPECT_EQ(desk.values_of(of.total), ones);
  if (sim == nullptr) return;
  // The kernel ran twice: in the warm-up, slowly, and in the first replay.
  std::vector<sim::timeline_row> kernels;
  std::uint64_t warm_up_ended = 0;
  for (const sim::timeline_row& row : sim->so_far().timeline) {
    if (row.label == "test_add_to") kernels.push_back(row);
  }
  ASSERT_EQ(kernels.size(), 2U);
  for (const sim::timeline_row& row : sim->so_far().timeline) {
    const bool of_the_warm_up = row.stream == kernels[0].stream;
    if (of_the_warm_up) warm_up_ended = std::max(warm_up_ended, row.end);
  }
  EXPECT_GE(kernels[0].end - kernels[0].begin, 50U) << "it was slow";
  EXPECT_NE(kernels[1].stream, kernels[0].stream);
  EXPECT_GE(kernels[1].begin, warm_up_ended);
}

}  // namespace
}  // namespace reprise::test
