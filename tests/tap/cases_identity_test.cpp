// What the field has met with who is who: producers whose labels changed places, and replays that
// all looked the same.
#include <set>

#include "tests/support/sanitized.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::raise_all;
using test::tapped_model;

class identity_cases : public test::monitored {};
MONITORED_ON_ALL_DEVICES(identity_cases);

TEST_P(identity_cases, T10_producers_beside_one_another_keep_their_labels) {
  tapped_model model{6, 4};
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int i = 0; i < 30; ++i) run(cache, eye, model, 3, "*");
  eye.flush();
  expect_all();
  EXPECT_EQ(eye.counts().mislabelled, 0U);
}

// Two tensors of one shape from branches beside one another, and a copy that nobody else reads.
TEST(T10_producers_on_branches, fire_once_each_under_their_own_labels_in_any_order) {
  constexpr int schedules = test::sanitized ? 10 : 100;
  for (int seed = 1; seed <= schedules; ++seed) {
    SCOPED_TRACE(seed);
    test::tap_bench on{"sim:seed=" + std::to_string(seed)};
    const stream side{on.opened};
    event crossing{on.opened};
    signature declared{"branches"};
    const input<float> x = declared.in<float>("x", {any, 4});
    const output<float> y = declared.out<float>("y");
    const step what{declared, [&](step_scope& run) {
                      const dims shape = run.shape(x);
                      const view<float> a = run.scratch<float>(shape);
                      const view<float> b = run.scratch<float>(shape);
                      const view<float> unread = run.scratch<float>(shape);
                      crossing.record(run);
                      crossing.wait(side);
                      const auto branch = run.on(side);
                      copy(branch, read(run[x]), write(a));
                      launch(branch, raise_all, inout(a), 1.0F);
                      copy(run, read(run[x]), write(b));
                      launch(run, raise_all, inout(b), 2.0F);
                      copy(run, read(run[x]), write(unread));
                      crossing.record(branch);
                      crossing.wait(run);
                      run.mark({"on_branch", 0}, as_tensor(a, shape));
                      run.mark({"on_run", 0}, as_tensor(b, shape));
                      run.mark({"unread", 0}, as_tensor(unread, shape));
                      launch(run, raise_all, inout(b), 4.0F);
                      copy(run, read(b), write(run.make(y, shape)));
                    }};
    monitor_options how;
    how.ring_bytes = how.staging_bytes = 1U << 12;
    how.slots = 16;
    how.flights = 4;
    how.most_points = 4;
    how.most_runs = 8;
    how.thread = seed % 2 == 0;
    how.markers = true;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    const auto book = std::make_shared<test::kept_book>();
    eye.deliver_to([book](const tap_record& one) { book->keep(one); });
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    constexpr std::uint64_t steps = 5;
    for (std::uint64_t i = 0; i < steps; ++i) {
      std::vector<float> values = test::tap_bench::values(8, i);
      cache.run(on.work, what, {x.from_host(values)});
    }
    eye.stop();
    ASSERT_EQ(book->records.size(), 3 * steps);
    const std::pair<const char*, float> marks[] = {{"on_branch", 1}, {"on_run", 2}, {"unread", 0}};
    for (std::size_t i = 0; i < book->records.size(); ++i) {
      const auto& [kind, by] = marks[i % 3];
      std::vector<float> values = test::tap_bench::values(8, i / 3);
      for (float& value : values) value += by;
      EXPECT_EQ(book->records[i].kind, kind);
      EXPECT_EQ(book->records[i].about.step, i / 3);
      EXPECT_EQ(book->records[i].values, values);
    }
    EXPECT_EQ(eye.counts().mislabelled + eye.counts().lost, 0U);
    on.work.synchronize();
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(identity_cases, T19_each_replay_has_an_identity_of_its_own) {
  tapped_model model{1, 4};
  monitor eye{on.opened, small()};
  eye.watch({"resid_pre", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  std::vector<float> x = test::tap_bench::values(4, 1);
  std::vector<std::uint64_t> sampled;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    eye.enable(i % 100 == 0 ? "*" : "none");
    on.run(cache, model, x);
    if (i % 100 == 0) sampled.push_back(i);
  }
  eye.flush();
  std::vector<std::uint64_t> got;
  std::set<replay_id> replays;
  for (const auto& record : book->records) {
    got.push_back(record.about.step);
    replays.insert(record.about.replay);
  }
  EXPECT_EQ(got, sampled);
  EXPECT_EQ(replays.size(), sampled.size());
  EXPECT_EQ(cache.counts().captured, 2U) << "with producers, and without";
}

// Two recordings of one step, in caches of their own, under one monitor: steps are counted jointly,
// as they ran, and each run has a number of its own.
TEST_P(identity_cases, T19_recordings_under_one_monitor_count_their_steps_jointly) {
  tapped_model model{1, 4};
  monitor eye{on.opened, small()};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache one{on.opened};
  replay_cache other{on.opened};
  one.observe(eye.observer());
  other.observe(eye.observer());
  for (int i = 0; i < 30; ++i) run(i % 3 == 0 ? one : other, eye, model, 2, "*");
  eye.flush();
  expect_all();
  std::set<replay_id> runs;
  for (const auto& record : book->records) runs.insert(record.about.replay);
  EXPECT_EQ(runs.size(), 30U);
  EXPECT_EQ(one.counts().captured + other.counts().captured, 2U);
  EXPECT_EQ(one.counts().replayed + other.counts().replayed, 28U);
}

// A loop inside one graph marks one point each time around; each has its record, in order.
TEST_P(identity_cases, T19_a_loop_inside_a_body_shows_each_time_around) {
  constexpr int rounds = 5;
  signature declared{"loop"};
  const input<float> x = declared.in<float>("x", {any, 4});
  const output<float> y = declared.out<float>("y");
  const step what{declared, [&](step_scope& run) {
                    const dims shape = run.shape(x);
                    const view<float> residual = run.scratch<float>(shape);
                    copy(run, read(run[x]), write(residual));
                    for (int i = 0; i < rounds; ++i) {
                      launch(run, raise_all, inout(residual), 1.0F);
                      run.mark({"round", 0}, as_tensor(residual, shape));
                    }
                    copy(run, read(residual), write(run.make(y, shape)));
                  }};
  for (const bool recorded : {true, false}) {
    monitor eye{on.opened, small()};
    eye.watch({"round", row_mode::all()});
    book = std::make_shared<test::kept_book>();
    send_here(eye);
    replay_cache cache{on.opened, {.record = recorded}};
    cache.observe(eye.observer());
    for (std::uint64_t i = 0; i < 10; ++i) {
      std::vector<float> values = test::tap_bench::values(8, i);
      cache.run(on.work, what, {x.from_host(values)});
    }
    eye.flush();
    ASSERT_EQ(book->records.size(), 10U * rounds);
    for (std::size_t i = 0; i < book->records.size(); ++i) {
      std::vector<float> values = test::tap_bench::values(8, i / rounds);
      for (float& value : values) value += static_cast<float>(i % rounds + 1);
      ASSERT_EQ(book->records[i].about.step, i / rounds);
      ASSERT_EQ(book->records[i].values, values);
    }
    expect_sums(eye.counts());
    EXPECT_EQ(eye.counts().mislabelled + eye.counts().lost, 0U);
  }
}

}  // namespace
}  // namespace reprise
