#include "reprise/replay/cache.hpp"

#include "reprise/device/slab_store.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/replay/support.hpp"

namespace reprise {
namespace {

class cache_test : public ::testing::TestWithParam<std::string> {
 protected:
  cache_test() {
    set_log_sink([this](std::string_view line) { log.emplace_back(line); });
  }
  ~cache_test() override { set_log_sink({}); }

  std::vector<float> result(const step_result& done, const output<float>& out) {
    return test::read_back(on.work, done[out].get());
  }

  std::vector<std::string> log;
  test::bench on{GetParam()};
  test::scaling scaled{on.memory, on.work, 2.0F};
  std::vector<float> values{1, 2, 3};
};

INSTANTIATE_TEST_SUITE_P(devices, cache_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(cache_test, the_first_call_is_captured_and_later_ones_are_replayed) {
  replay_cache cache{on.opened};
  EXPECT_EQ(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}).how, ran::captured);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}).how, ran::replayed);
  }
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, 9U);
  EXPECT_EQ(cache.counts().eager, 0U);
  EXPECT_EQ((*on.calls)[seam_call::capture], 1U);
  EXPECT_EQ((*on.calls)[seam_call::instantiate], 1U);
  EXPECT_EQ((*on.calls)[seam_call::launch], 10U);
  EXPECT_EQ(scaled.runs, 2) << "warm-up and capture";
}

TEST_P(cache_test, each_shape_is_a_recording_of_its_own) {
  replay_cache cache{on.opened};
  for (int round = 0; round < 3; ++round) {
    for (std::size_t n : {1U, 2U, 5U}) {
      values.assign(n, static_cast<float>(round));
      EXPECT_EQ(result(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}), scaled.y),
                std::vector<float>(n, 2.0F * static_cast<float>(round)));
    }
  }
  EXPECT_EQ(cache.recordings(), 3U);
  EXPECT_EQ(cache.counts().captured, 3U);
  EXPECT_EQ(cache.counts().replayed, 6U);
}

TEST_P(cache_test, steps_of_one_name_are_not_confused) {
  replay_cache cache{on.opened};
  test::scaling other{on.memory, on.work, 5.0F};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(result(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}), scaled.y),
              (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(result(cache.run(on.work, other.what, {other.x.from_host(values)}), other.y),
              (std::vector<float>{5, 10, 15}));
  }
  EXPECT_EQ(cache.counts().captured, 2U);
}

TEST_P(cache_test, retired_recordings_give_their_bytes_back) {
  replay_cache cache{on.opened};
  const auto cycle = [&] {
    cache.run(on.work, scaled.what, {scaled.x.from_host(values)});
    cache.run(on.work, scaled.what, {scaled.x.from_host(values)});
    scaled.weight.version.bump();
    cache.run(on.work, scaled.what, {scaled.x.from_host(values)});
    on.work.synchronize();
  };
  for (int i = 0; i < 5; ++i) cycle();  // the memory of the eager runs is there
  const device_ref device = on.opened;
  const auto held = [&] {
    return device.state().slabs->leased_bytes() + device.state().slabs->idle_bytes() +
           device.pinned_bytes();
  };
  const std::size_t bytes = held();
  for (int i = 0; i < 200; ++i) cycle();
  EXPECT_EQ(held(), bytes);
}

TEST_P(cache_test, a_step_that_is_never_captured_says_its_own_reason) {
  signature declared{"prefill"};
  const auto x = declared.in<float>("x", {any});
  const auto y = declared.out<float>("y");
  const step what{
      declared, [&](step_scope& run) { copy(run, read(run[x]), write(run.make(y, run.shape(x)))); },
      eager_only{"prefill"}};
  replay_cache cache{on.opened};
  const step_result first = cache.run(on.work, what, {x.from_host(values)});
  EXPECT_EQ(first.how, ran::eager);
  EXPECT_EQ(first.why->rule, "prefill");
  const step_result second = cache.run(on.work, what, {x.from_host(values)});
  EXPECT_EQ(second.why, first.why) << "one object per cause";
  EXPECT_EQ(cache.counts().eager_reasons.at("prefill"), 2U);
  EXPECT_TRUE(log.empty()) << "what was planned is not reported";
}

TEST_P(cache_test, with_recording_off_nothing_of_capture_is_called) {
  replay_cache cache{on.opened, {.record = false}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(result(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}), scaled.y),
              (std::vector<float>{2, 4, 6}));
  }
  EXPECT_EQ(cache.counts().eager, 5U);
  EXPECT_EQ(cache.counts().eager_reasons.at("recording is off"), 5U);
  EXPECT_EQ((*on.calls)[seam_call::capture], 0U);
  EXPECT_EQ((*on.calls)[seam_call::instantiate], 0U);
  EXPECT_EQ((*on.calls)[seam_call::launch], 0U);
}

class recording_observer : public mark_observer {
 public:
  void on_mark(step_scope&, point where, const tensor_ref& what) override {
    seen.push_back(std::string{where.kind} + " " + std::to_string(where.layer) + " " +
                   to_string(what.shape));
  }
  std::vector<std::string> seen;
};

TEST_P(cache_test, an_observer_sees_every_mark_and_steps_run_eagerly_while_it_is_there) {
  signature declared{"marked"};
  const auto x = declared.in<float>("x", {any});
  const step what{declared, [&](step_scope& run) {
                    const view<float> copied = run.scratch<float>(run.shape(x));
                    copy(run, read(run[x]), write(copied));
                    run.mark({"resid_pre", 3}, as_tensor(copied, run.shape(x)));
                  }};
  replay_cache cache{on.opened};
  cache.run(on.work, what, {x.from_host(values)});
  cache.run(on.work, what, {x.from_host(values)});
  const auto observer = std::make_shared<recording_observer>();
  cache.observe(observer);
  EXPECT_EQ(cache.run(on.work, what, {x.from_host(values)}).why->rule, "observer installed");
  EXPECT_EQ(observer->seen, std::vector<std::string>{"resid_pre 3 [3]"});
  cache.stop_observing();
  EXPECT_EQ(cache.run(on.work, what, {x.from_host(values)}).how, ran::replayed)
      << "the recording of before is still right";
  EXPECT_EQ(observer->seen.size(), 1U);
}

TEST_P(cache_test, wrong_bindings_are_refused_and_change_nothing) {
  replay_cache cache{on.opened};
  const step_result good = cache.run(on.work, scaled.what, {scaled.x.from_host(values)});
  EXPECT_THROW(cache.run(on.work, scaled.what, {}), usage_error);
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().eager, 0U);
  EXPECT_TRUE(good[scaled.y].valid());
}

TEST_P(cache_test, a_stream_that_somebody_else_captures_is_refused) {
  replay_cache cache{on.opened};
  const auto nested = [&] {
    capture(on.work,
            [&](stream_ref s) { cache.run(s, scaled.what, {scaled.x.from_host(values)}); });
  };
  EXPECT_THROW(nested(), usage_error);
  EXPECT_EQ(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}).how, ran::captured)
      << "the stream and the cache are as before";
}

TEST_P(cache_test, a_capture_that_keeps_failing_is_given_up_and_logged_once) {
  signature declared{"hopeless"};
  const auto x = declared.in<float>("x", {any});
  const step what{declared, [&](step_scope& run) { stream_ref{run}.synchronize(); }};
  replay_cache cache{on.opened, {.failure_limit = 3}};
  for (int i = 0; i < 10; ++i) cache.run(on.work, what, {x.from_host(values)});
  EXPECT_EQ((*on.calls)[seam_call::capture], 3U);
  EXPECT_EQ(cache.counts().eager_reasons.at("capture failed"), 3U);
  EXPECT_EQ(cache.counts().eager_reasons.at("capture keeps failing"), 7U);
  EXPECT_EQ(log.size(), 2U) << "a line for each of the two reasons";
}

TEST_P(cache_test, an_empty_input_is_a_shape_like_any_other) {
  replay_cache cache{on.opened};
  values.clear();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(
        result(cache.run(on.work, scaled.what, {scaled.x.from_host(values)}), scaled.y).empty());
  }
  EXPECT_EQ(cache.counts().replayed, 2U);
}

}  // namespace
}  // namespace reprise
