// Recordings that come and go leave nothing behind: bytes, pinned blocks, executables and the
// budget are, cycle after cycle, where they were.
#include <limits>

#include "reprise/device/memory_report.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/replay/support.hpp"

namespace reprise {
namespace {

constexpr std::size_t shapes = 6;
constexpr int never = std::numeric_limits<int>::max();

// All that a cycle could leave behind.
struct held {
  std::size_t budget = 0;
  std::size_t recordings = 0;
  std::size_t pools = 0;  // how many
  std::size_t pool_bytes = 0;
  std::size_t used_bytes = 0;
  std::size_t idle_bytes = 0;
  std::size_t pinned = 0;
  std::size_t executables = 0;
  std::size_t nodes = 0;
  std::size_t eager = 0;

  bool operator==(const held&) const = default;
};

void PrintTo(const held& one, std::ostream* to) {
  *to << "budget " << one.budget << ", recordings " << one.recordings << ", pools " << one.pools
      << " of " << one.pool_bytes << " bytes, " << one.used_bytes << " used, idle "
      << one.idle_bytes << ", pinned " << one.pinned << ", executables " << one.executables
      << " of " << one.nodes << " nodes, eager " << one.eager;
}

class growth_test : public ::testing::TestWithParam<std::string> {
 protected:
  growth_test() {
    set_log_sink([](std::string_view) {});
  }
  ~growth_test() override { set_log_sink({}); }

  // Of each of the shapes once; what was queued is done.
  void run_all_shapes(replay_cache& cache) {
    for (std::size_t n = 1; n <= shapes; ++n) {
      values.assign(n, static_cast<float>(n));
      const step_result done = cache.run(on.work, scaled.what, {scaled.x.from_host(values)});
      ASSERT_EQ(test::read_back(on.work, done[scaled.y].get()),
                std::vector<float>(n, factor * static_cast<float>(n)));
    }
  }
  held held_now(replay_cache& cache) {
    cache.drain();
    const memory_report report = report_memory(on.opened);
    held now;
    now.budget = cache.budget().held();
    now.recordings = cache.recordings();
    now.pools = report.pools.size();
    for (const pool_figures& one : report.pools) {
      now.pool_bytes += one.bytes;
      now.used_bytes += one.used;
    }
    now.idle_bytes = report.idle_slabs;
    now.pinned = report.pinned;
    now.executables = report.executables;
    now.nodes = report.executable_nodes;
    now.eager = cache.bytes().eager;
    return now;
  }
  template <class Cycle>
  void expect_flat(replay_cache& cache, Cycle&& cycle) {
    for (int i = 0; i < 5; ++i) cycle();
    const held before = held_now(cache);
    for (int i = 0; i < 50; ++i) cycle();
    EXPECT_EQ(held_now(cache), before);
  }

  test::bench on{GetParam()};
  float factor = 2.0F;
  test::scaling scaled{on.memory, on.work, factor};
  std::vector<float> values;
};

INSTANTIATE_TEST_SUITE_P(devices, growth_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(growth_test, evicting_and_recording_again_leaves_every_byte_where_it_was) {
  std::size_t largest = 0;
  {
    replay_cache alone{on.opened};
    run_all_shapes(alone);
    largest = alone.bytes().recordings / shapes + 1;
  }
  byte_budget room_for_two{2 * largest + largest / 2};
  replay_cache cache{on.opened, {.churn_limit = never, .budget = &room_for_two}};
  expect_flat(cache, [&] { run_all_shapes(cache); });
  EXPECT_EQ(cache.counts().captured, 55 * shapes) << "each cycle records each shape anew";
  EXPECT_EQ(cache.counts().evicted + cache.recordings(), cache.counts().captured);
  EXPECT_LE(room_for_two.most_held(), room_for_two.limit());
}

TEST_P(growth_test, dropping_what_is_stale_leaves_every_byte_where_it_was) {
  replay_cache cache{on.opened, {.churn_limit = never}};
  expect_flat(cache, [&] {
    scaled.weight.version.bump();
    EXPECT_EQ(cache.drop_stale(), cache.counts().captured == 0 ? 0U : shapes);
    cache.drain();
    run_all_shapes(cache);
  });
  EXPECT_EQ(cache.counts().captured, 55 * shapes);
  EXPECT_EQ(cache.recordings(), shapes);
}

TEST_P(growth_test, sleeping_gives_back_all_that_recordings_hold) {
  byte_budget all{byte_budget::unlimited};
  replay_cache cache{on.opened, {.churn_limit = never, .budget = &all}};
  expect_flat(cache, [&] {
    run_all_shapes(cache);
    EXPECT_NE(all.held(), 0U);
    cache.sleep();
    EXPECT_EQ(all.held(), 0U);
    EXPECT_EQ(report_memory(on.opened).executables, 0U);
  });
}

TEST_P(growth_test, refused_captures_leave_every_byte_where_it_was) {
  byte_budget nothing{1};
  replay_cache cache{on.opened, {.budget = &nothing}};
  expect_flat(cache, [&] { run_all_shapes(cache); });
  EXPECT_EQ(cache.counts().eager, 55 * shapes);
  EXPECT_EQ(report_memory(on.opened).executables, 0U);
}

}  // namespace
}  // namespace reprise
