// What the field has met with taps in graphs: gating, old attachments, lifetimes, cost.
#include "reprise/sim/controls.hpp"
#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::calls_since;
using test::tapped_model;

class graph_cases : public test::monitored {};
MONITORED_ON_ALL_DEVICES(graph_cases);

TEST_P(graph_cases, T04_eager_steps_and_replays_fire_what_was_planned_for_them) {
  tapped_model model{4, 4};
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache recorded{on.opened};
  replay_cache eager{on.opened, {.record = false}};
  recorded.observe(eye.observer());
  eager.observe(eye.observer());
  for (int i = 0; i < 12; ++i) {
    const char* enabled = i % 3 == 0 ? "resid_pre:1+3" : i % 3 == 1 ? "*" : "none";
    eye.enable(enabled);
    run(i % 2 == 0 ? recorded : eager, eye, model, 2, enabled);
  }
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().lost, 0U);
}

// A ring of one step: a replay that fires nothing must not touch what the step before has
// published.
TEST_P(graph_cases, T04_a_replay_with_no_point_enabled_leaves_the_ring_alone) {
  tapped_model model{4, 4};
  monitor_options how = small();
  how.slots = 8;
  how.ring_bytes = 8 * 48;
  how.flights = 16;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache recorded{on.opened};
  replay_cache eager{on.opened, {.record = false}};
  recorded.observe(eye.observer());
  eager.observe(eye.observer());
  run(recorded, eye, model, 2, "*");
  for (int i = 0; i < 3; ++i) {
    eye.flush();
    eye.enable("*");
    run(eager, eye, model, 2, "*");
    eye.enable("another_kind");  // the recording with producers, all of them off
    run(recorded, eye, model, 2, "none");
  }
  EXPECT_EQ(recorded.counts().captured, 1U);
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().lost, 0U);
}

// With nothing enabled there is nothing to pay for: the step's own recording is replayed.
TEST_P(graph_cases, of_no_point_at_all_are_the_steps_own_recording) {
  tapped_model model{4, 4};
  replay_cache cache{on.opened};
  std::vector<float> x = test::tap_bench::values(8, 1);
  on.run(cache, model, x);
  const std::size_t bare = cache.report().recordings.front().nodes;
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  cache.observe(eye.observer());
  for (const char* enabled : {"none", "*", "none", "*", "none"}) {
    eye.enable(enabled);
    for (int i = 0; i < 3; ++i) run(cache, eye, model, 2, enabled);
  }
  eye.watch(tap_spec{"*", row_mode::none()});
  EXPECT_EQ(run(cache, eye, model, 2, "none").how, ran::replayed);
  eye.flush();
  expect_all();
  EXPECT_EQ(cache.counts().captured, 2U);
  EXPECT_EQ(cache.counts().replayed, 15U);
  EXPECT_EQ(eye.counts().steps, 16U) << "those of the step's own recording too";
  std::set<std::size_t> nodes;
  for (const auto& one : cache.report().recordings) nodes.insert(one.nodes);
  EXPECT_EQ(nodes, (std::set<std::size_t>{bare, bare + 10}));
}

// A prefill fires all that is watched, whatever is enabled for the steps that replay; rows that
// follow a table are taken of what is enabled, on every step.
TEST_P(graph_cases, T04_steps_that_never_replay_are_not_gated) {
  tapped_model model{2, 4};
  const std::vector<request_rows> batch{{1, 0, 2, 0, 0}};
  for (const bool record : {false, true}) {
    monitor eye{on.opened, small()};
    eye.watch({{"resid_pre:*", row_mode::all()}, {"resid_post:*", row_mode::last()}});
    eye.enable("resid_pre:1,resid_post:0");
    const auto taken = std::make_shared<test::kept_book>();
    send_to(eye, taken);
    replay_cache cache{on.opened, {.record = record}};
    cache.observe(eye.observer());
    std::vector<float> x = test::tap_bench::values(8, 1);
    const auto fired = [&](step_gate gate) {
      taken->records.clear();
      eye.plan_step(batch, gate);
      on.run(cache, model, x);
      eye.flush();
      std::set<std::string> points;
      for (const auto& one : taken->records) {
        points.insert(one.kind + std::to_string(one.about.layer));
      }
      return points;
    };
    const std::set<std::string> gated{"resid_pre1", "resid_post0"};
    const std::set<std::string> ungated{"resid_pre0", "resid_pre1", "resid_post0"};
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(fired(step_gate::gated), gated);
      EXPECT_EQ(fired(step_gate::ungated), ungated);
    }
    eye.enable("none");
    EXPECT_EQ(fired(step_gate::gated), std::set<std::string>{});
    EXPECT_EQ(fired(step_gate::ungated), (std::set<std::string>{"resid_pre0", "resid_pre1"}));
    EXPECT_EQ(eye.counts().planned, eye.counts().published);
  }
}

TEST_P(graph_cases, T16_a_new_attachment_uses_no_old_recording) {
  tapped_model model{2, 4};
  replay_cache cache{on.opened};
  {
    monitor first{on.opened, small()};
    first.watch({"*", row_mode::last()});
    cache.observe(first.observer());
    std::vector<float> x = test::tap_bench::values(8, 1);
    for (int i = 0; i < 3; ++i) on.run(cache, model, x);
    cache.stop_observing();
  }
  monitor second{on.opened, small()};
  second.watch({"resid_pre:0", row_mode::all()});
  send_here(second);
  cache.observe(second.observer());
  for (int i = 0; i < 3; ++i) run(cache, second, model, 2, "resid_pre:0");
  second.flush();
  expect_all();
  EXPECT_EQ(cache.counts().captured, 2U);
}

TEST_P(graph_cases, T16_a_monitor_that_stopped_publishes_nothing) {
  tapped_model model{2, 4};
  replay_cache cache{on.opened};
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  cache.observe(eye.observer());
  run(cache, eye, model, 2, "*");
  eye.stop();
  std::vector<float> x = test::tap_bench::values(8, 1);
  for (int i = 0; i < 3; ++i) EXPECT_NE(on.run(cache, model, x).how, ran::eager);
  on.work.synchronize();
  expect_all();
  EXPECT_EQ(eye.counts().planned, 4U);
}

// A replay is under way while monitor, cache and sink go, in every order.
TEST_P(graph_cases, T18_the_ring_lasts_until_the_last_replay_is_done) {
  for (int order = 0; order < 6; ++order) {
    tapped_model model{2, 4};
    auto eye = std::make_unique<monitor>(on.opened, small());
    auto cache = std::make_unique<replay_cache>(on.opened);
    auto observer = eye->observer();
    eye->watch({"*", row_mode::all()});
    send_here(*eye);
    cache->observe(observer);
    std::vector<float> x = test::tap_bench::values(8, 1);
    on.run(*cache, model, x);
    eye->flush();
    book->records.clear();
    sim::controls* const sim = sim::controls_of(on.opened);
    if (sim != nullptr) sim->slow(static_cast<stream_ref>(on.work).id(), 100);
    on.run(*cache, model, x);
    const auto go = [&](int what) {
      if (what == 0) eye.reset();
      if (what == 1) cache.reset();
      if (what == 2) observer.reset();
    };
    const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (const int what : orders[order]) go(what);
    on.work.synchronize();
    EXPECT_EQ(book->records.size(), 4U) << order;
    if (sim != nullptr) sim->slow(static_cast<stream_ref>(on.work).id(), 1);
  }
}

TEST_P(graph_cases, T20_a_point_is_one_kernel_and_nothing_waits_for_the_host) {
  tapped_model model{18, 4};  // 36 taps
  std::vector<float> x = test::tap_bench::values(4, 1);
  monitor_options how = small();
  how.most_points = 64;
  how.slots = 256;
  replay_cache plain{on.opened};
  on.run(plain, model, x);
  on.run(plain, model, x);
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  const calls_since calls{*on.calls};
  on.run(cache, model, x);
  EXPECT_EQ(calls[seam_call::host_call], 0U);
  on.run(cache, model, x);
  const auto nodes = [](const replay_cache& of) { return of.report().recordings.front().nodes; };
  EXPECT_EQ(nodes(cache), nodes(plain) + 38)
      << "and two: the plan is brought, and what was taken is said";
  eye.flush();
  EXPECT_EQ(eye.counts().published, 72U);
}

}  // namespace
}  // namespace reprise
