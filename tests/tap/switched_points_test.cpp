// What is enabled decides which nodes of a recorded graph run: in every mode the records are those
// of the enabled points, the outputs those of a plain run, and the calls of the device no more than
// the mode says.
#include <random>

#include "reprise/device/faulty.hpp"
#include "reprise/sim/device.hpp"
#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::tapped_model;

class switched_points : public test::monitored {
 protected:
  monitor_options by(toggle_mode mode) {
    monitor_options how = small();
    how.switch_by = mode;
    return how;
  }
  // A step under this set; its output is that of a plain run.
  void step(replay_cache& cache, monitor& eye, tapped_model& model, const char* enabled) {
    eye.enable(enabled);
    const step_result done = run(cache, eye, model, 2, enabled);
    EXPECT_NE(done.how, ran::eager) << enabled;
    std::vector<float> expected = test::tap_bench::values(2 * model.width_, steps - 1);
    const int raised = model.layers_ * (model.layers_ + 1) / 2;
    for (float& one : expected) one += static_cast<float>(raised);
    std::vector<float> y(expected.size());
    copy(on.work, read<float>{done[model.y].get()}, write<float>{view<float>{y.data(), y.size()}});
    on.work.synchronize();
    EXPECT_EQ(y, expected) << enabled;
  }
};
MONITORED_ON_ALL_DEVICES(switched_points);

constexpr toggle_mode modes[] = {toggle_mode::automatic, toggle_mode::variants,
                                 toggle_mode::host_lazy, toggle_mode::host_eager,
                                 toggle_mode::device};
constexpr const char* sets[] = {
    "*", "resid_pre", "resid_post:1", "none", "resid_pre:0", "resid_post:2", "*", "resid_post"};

TEST_P(switched_points, give_the_records_of_what_is_enabled_in_every_mode) {
  for (const toggle_mode mode : modes) {
    SCOPED_TRACE(name_of(mode));
    tapped_model model{3, 4};
    monitor eye{on.opened, by(mode)};
    eye.watch({"*", row_mode::all()});
    book = std::make_shared<test::kept_book>();
    send_here(eye);
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    expected.clear();
    steps = 0;
    std::minstd_rand draw{7};
    step(cache, eye, model, "*");
    for (int i = 0; i < 60; ++i) {
      step(cache, eye, model, sets[draw() % std::size(sets)]);
      if (HasFailure()) return;
    }
    eye.flush();
    expect_all();
    expect_sums(eye.counts());
    EXPECT_EQ(eye.counts().lost + eye.counts().dropped, 0U);
    EXPECT_EQ(cache.counts().captured, 2U) << "with producers, and the step's own for none";
    const toggle_counts counts = eye.switch_counts();
    if (mode == toggle_mode::host_lazy || mode == toggle_mode::host_eager) {
      EXPECT_GT(counts.enable_calls, 0U);
      EXPECT_EQ(counts.variants_made, 0U);
    }
    if (mode == toggle_mode::variants) {
      EXPECT_EQ(counts.enable_calls, 0U);
      EXPECT_GT(counts.variants_made, 0U);
    }
    if (mode == toggle_mode::device) {
      EXPECT_EQ(counts.enable_calls + counts.copies + counts.variants_made, 0U);
    }
  }
}

TEST_P(switched_points, of_an_unchanged_set_cost_no_call_beside_the_launch) {
  for (const toggle_mode mode : modes) {
    SCOPED_TRACE(name_of(mode));
    tapped_model model{3, 4};
    monitor eye{on.opened, by(mode)};
    eye.watch({"*", row_mode::all()});
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    std::vector<float> x = test::tap_bench::values(8, 1);
    const auto again = [&] {
      eye.plan_step({});
      on.run(cache, model, x);
      on.work.synchronize();
      eye.flush();
    };
    again();
    eye.enable("resid_pre:1");
    for (int i = 0; i < 4; ++i) again();
    const test::calls_since calls{*on.calls};
    eye.plan_step({});
    on.run(cache, model, x);
    EXPECT_EQ(calls[seam_call::launch], 1U);
    EXPECT_EQ(calls[seam_call::enable], 0U);
    EXPECT_EQ(calls[seam_call::instantiate], 0U);
    EXPECT_EQ(calls[seam_call::kernel] + calls[seam_call::copy] + calls[seam_call::fill], 0U);
  }
}

// In automatic mode a step without room runs an executable without producers: as dear as one that
// nobody watches, and the next that has room publishes again.
TEST_P(switched_points, of_a_dropped_step_are_not_in_its_graph) {
  tapped_model model{3, 4};
  monitor_options how = by(toggle_mode::automatic);
  how.ring_bytes = 6 * (32 + 16);  // one step
  how.drop_when_full = true;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int round = 0; round < 4; ++round) {
    step(cache, eye, model, "*");
    const std::size_t kept = expected.size();
    for (int i = 0; i < 3; ++i) step(cache, eye, model, "*");  // nobody drains
    expected.resize(kept);
    EXPECT_EQ(eye.switch_counts().nodes_on, 0U);
    EXPECT_EQ(eye.switch_counts().nodes_off, 6U + 2) << "with what they share";
    eye.flush();
  }
  expect_all();
  EXPECT_EQ(eye.counts().dropped, 4U * 3 * 6);
  EXPECT_EQ(eye.switch_counts().enable_calls, 0U);
  EXPECT_EQ(cache.counts().captured, 1U);
}

// Where the host would have to switch every node for one step, they run and are told to publish
// nothing; in mode device the graph leaves them out by the same words.
TEST_P(switched_points, of_a_dropped_step_publish_nothing_where_they_run) {
  for (const toggle_mode mode : {toggle_mode::host_lazy, toggle_mode::device}) {
    tapped_model model{3, 4};
    monitor_options how = by(mode);
    how.ring_bytes = 6 * (32 + 16);  // one step
    how.drop_when_full = true;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    book = std::make_shared<test::kept_book>();
    send_here(eye);
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    expected.clear();
    steps = 0;
    for (int round = 0; round < 4; ++round) {
      step(cache, eye, model, "*");
      const std::size_t kept = expected.size();
      for (int i = 0; i < 3; ++i) step(cache, eye, model, "*");  // nobody drains
      expected.resize(kept);
      eye.flush();
    }
    expect_all();
    EXPECT_EQ(eye.counts().dropped, 4U * 3 * 6);
    EXPECT_EQ(eye.counts().lost, 0U);
    EXPECT_EQ(eye.switch_counts().enable_calls, 0U);
  }
}

// The first failure is known and mended by the next launch; the second ends the session, restores
// everything, and steps go on unwatched, with one line.
TEST(switched_points_of_a_failing_device, end_the_watch_and_not_the_run) {
  for (const bool seeded : {false, true}) {
    const auto plan = std::make_shared<fault_plan>();
    sim::adversary_options how;
    how.takes_fault_points = false;
    auto bare = seeded ? sim::open_adversary(how) : sim::open_cpu(1);
    auto implementation = faulty(std::move(bare), plan);
    auto table = resolve_kernels(test::tap_kernels(), implementation->traits());
    const device failing{std::move(implementation), std::move(table)};
    const stream work{failing};
    tapped_model model{3, 4};
    monitor_options options;
    options.switch_by = toggle_mode::host_lazy;
    options.thread = false;
    monitor eye{failing, options};
    eye.watch({"*", row_mode::all()});
    std::uint64_t records = 0;
    eye.deliver_to([&](const tap_record&) { ++records; });
    replay_cache cache{failing};
    cache.observe(eye.observer());
    std::vector<float> x = test::tap_bench::values(8, 1);
    const auto once = [&] {
      const step_result done = cache.run(work, model.what, {model.x.from_host(x)});
      std::vector<float> y(8);
      copy(work, read<float>{done[model.y].get()}, write<float>{view<float>{y.data(), 8}});
      work.synchronize();
      for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(y[i], x[i] + 6);
      return done.how;
    };
    const test::reports told;
    EXPECT_EQ(once(), ran::captured);
    eye.enable("resid_pre:1");
    plan->fail_call(seam_call::enable, 2);
    EXPECT_EQ(once(), ran::eager) << "what is on is known, and the next launch tries again";
    EXPECT_EQ(once(), ran::replayed);
    eye.enable("resid_pre:0");
    plan->fail_call(seam_call::enable, 1);
    const ran first = once();
    plan->fail_call(seam_call::enable, 1);
    const ran second = once();
    EXPECT_TRUE(first == ran::eager || second == ran::eager);
    eye.flush();
    const std::uint64_t watched = records;
    plan->fail_call(seam_call::enable, 0);
    for (int i = 0; i < 4; ++i) once();
    EXPECT_EQ(once(), ran::replayed);
    eye.flush();
    EXPECT_EQ(records, watched);
    EXPECT_EQ(eye.counts().lost, 0U);
    std::size_t lines = 0;
    for (const std::string& line : test::reports::taken()) {
      lines += test::has(line, "nothing is watched from here on") ? 1 : 0;
    }
    EXPECT_EQ(lines, 1U);
  }
}

}  // namespace
}  // namespace reprise
