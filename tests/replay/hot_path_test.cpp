// A replay through the cache allocates nothing, logs nothing, and calls the device as often as was
// planned.
#include <gtest/gtest.h>

#include <array>
#include <list>

#include "reprise/replay/cache.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/replay/counted_new.hpp"
#include "tests/replay/support.hpp"

namespace reprise {
namespace {

constexpr std::size_t replays = 1000;
constexpr std::size_t block_elements = 1024;  // 4 KiB: the halves have all their slots

class hot_path_test : public ::testing::TestWithParam<std::string> {
 protected:
  hot_path_test() {
    set_log_sink([this](std::string_view line) { log.emplace_back(line); });
    for (int i = 0; i < 12; ++i) {
      parameter& weight = weights.emplace_back();
      weight.value = as_tensor(source.all());
      declared.uses("weight " + std::to_string(i), weight);
    }
    for (int i = 0; i < 8; ++i) {
      declared.fact("counter " + std::to_string(i), counters.emplace_back());
    }
    test::upload(on.work, values, source.all());
  }
  ~hot_path_test() override { set_log_sink({}); }

  // Calls `run` often, never with more queued than half a half holds, and fills in what it cost.
  template <class Run>
  void replay_often(Run&& run) {
    for (std::size_t i = 0; i < seam_calls; ++i) before[i] = (*on.calls)[static_cast<seam_call>(i)];
    const std::uint64_t counted_before = test::allocations_of_this_thread();
    for (std::size_t i = 0; i < replays; ++i) {
      run();
      if (i % 8 == 7) on.work.synchronize();
    }
    allocations = test::allocations_of_this_thread() - counted_before;
  }
  std::uint64_t calls(seam_call call) const {
    return (*on.calls)[call] - before[static_cast<std::size_t>(call)];
  }
  // Every kind of call that a replay has no use for.
  void expect_nothing_else() const {
    for (const seam_call call :
         {seam_call::kernel, seam_call::fill, seam_call::host_call, seam_call::external,
          seam_call::event_wait, seam_call::allocate, seam_call::release, seam_call::create_stream,
          seam_call::create_event, seam_call::capture, seam_call::instantiate}) {
      EXPECT_EQ(calls(call), 0U) << name_of(call);
    }
    EXPECT_EQ(calls(seam_call::synchronize), replays / 8) << "the test's own";
  }

  std::vector<std::string> log;
  test::bench on{GetParam()};
  std::vector<float> values = std::vector<float>(block_elements, 1.0F);
  buffer<float> source{on.memory, block_elements, on.work};
  std::list<parameter> weights;
  std::list<version_counter> counters;
  signature declared{"hot"};
  std::array<std::uint64_t, seam_calls> before{};
  std::uint64_t allocations = 0;
};

INSTANTIATE_TEST_SUITE_P(devices, hot_path_test, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(hot_path_test, a_thousand_replays_with_32_facts_and_a_staged_block_cost_what_was_planned) {
  const auto x = declared.in<float>("x", {any});
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                  }};
  ASSERT_EQ(what.declared().facts().size(), 32U);
  replay_cache cache{on.opened};
  const auto run = [&] {
    values[0] += 1.0F;
    return cache.run(on.work, what, {x.from_host(values)});
  };
  run();
  replay_often(run);
  EXPECT_EQ(allocations, 0U);
  EXPECT_EQ(calls(seam_call::launch), replays);
  for (const seam_call call : {seam_call::copy, seam_call::event_record, seam_call::query}) {
    EXPECT_EQ(calls(call), 0U) << name_of(call);
  }
  expect_nothing_else();
  EXPECT_EQ(log, std::vector<std::string>{});
  EXPECT_EQ(cache.counts().captured, 1U);
  EXPECT_EQ(cache.counts().replayed, replays);
  EXPECT_EQ(cache.counts().eager, 0U);
  const step_result last = run();
  EXPECT_EQ(test::read_back(on.work, last[y].get()), values);
}

TEST_P(hot_path_test, a_hit_of_a_key_of_12_parts_among_many_recordings_is_one_launch) {
  const auto x = declared.in<float>("x", {any});
  const auto y = declared.out<float>("y");
  std::array<std::uint64_t, 11> parts{};
  int reads = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string name = "part " + std::to_string(i);
    if (i % 2 == 0) {
      declared.key(name, i);
    } else {
      declared.key(name, [&parts, &reads, i] {
        ++reads;
        return parts[i];
      });
    }
  }
  const step what{declared, [&](step_scope& run) {
                    copy(run, read(run[x]), write(run.make(y, run.shape(x))));
                  }};
  replay_cache cache{on.opened};
  constexpr std::size_t others = 50;
  for (std::size_t n = 1; n <= others; ++n) {
    cache.run(on.work, what, {x.from_host(std::span{values}.first(n))});
  }
  const auto run = [&] {
    values[0] += 1.0F;
    return cache.run(on.work, what, {x.from_host(values)});
  };
  run();
  reads = 0;
  replay_often(run);
  EXPECT_EQ(allocations, 0U);
  EXPECT_EQ(calls(seam_call::launch), replays);
  for (const seam_call call : {seam_call::copy, seam_call::event_record, seam_call::query}) {
    EXPECT_EQ(calls(call), 0U) << name_of(call);
  }
  expect_nothing_else();
  EXPECT_EQ(reads, 5 * static_cast<int>(replays)) << "each part that is a function, once a call";
  EXPECT_EQ(cache.counts().captured, others + 1);
  EXPECT_EQ(cache.counts().replayed, replays);
  parts[9] = 1;
  EXPECT_EQ(run().how, ran::captured) << "the whole key is compared";
  EXPECT_EQ(test::read_back(on.work, run()[y].get()), values);
}

TEST_P(hot_path_test, a_thousand_replays_without_inputs_are_a_thousand_launches) {
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    copy(run, read(source), write(run.make(y, {block_elements})));
                  }};
  replay_cache cache{on.opened};
  cache.run(on.work, what, {});
  replay_often([&] { cache.run(on.work, what, {}); });
  EXPECT_EQ(allocations, 0U);
  EXPECT_EQ(calls(seam_call::launch), replays);
  for (const seam_call call : {seam_call::copy, seam_call::event_record, seam_call::query}) {
    EXPECT_EQ(calls(call), 0U) << name_of(call);
  }
  expect_nothing_else();
  EXPECT_EQ(log, std::vector<std::string>{});
  EXPECT_EQ(cache.counts().replayed, replays);
}

TEST_P(hot_path_test, what_is_off_the_hot_path_is_seen_to_allocate_and_to_log) {
  const auto y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    copy(run, read(source), write(run.make(y, {block_elements})));
                  }};
  replay_cache cache{on.opened};
  cache.run(on.work, what, {});
  counters.back().bump();
  const std::uint64_t counted_before = test::allocations_of_this_thread();
  EXPECT_EQ(cache.run(on.work, what, {}).how, ran::eager);
  EXPECT_GT(test::allocations_of_this_thread(), counted_before);
  EXPECT_EQ(log.size(), 1U);
}

}  // namespace
}  // namespace reprise
