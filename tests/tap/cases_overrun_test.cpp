// What the field has met when a ring is small, or is run over: a slot that is read again before it
// was written, and one that was written again before it was read.
#include "reprise/tap/plan_words.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::publication_fault;
using test::tapped_model;

class overrun_cases : public test::monitored {
 protected:
  // One layer is two publications a step, and two steps are the ring, in slots and in bytes.
  static constexpr std::size_t payload = 2 * 16 + marker_bytes;
  static monitor_options two_steps() {
    monitor_options how = small();
    how.slots = 4;
    how.ring_bytes = 4 * payload;
    return how;
  }
  // `more` publications than the ring has room for, while nobody drains.
  tap_counts over_by(std::uint64_t more) {
    tapped_model model{1, 4};
    monitor eye{on.opened, two_steps()};
    eye.watch({"*", row_mode::all()});
    send_here(eye);
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    for (int round = 0; round < 3; ++round) {
      const bool is_over = round == 1;
      if (is_over) test::next_fault = {publication_fault::run_away, 3, more};
      for (int i = 0; i < 2; ++i) run(cache, eye, model, 2, "*");
      on.work.synchronize();
      if (is_over) {
        const auto first = expected.end() - 4;
        expected.erase(first,
                       first + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(more, 4)));
      }
      eye.flush();
    }
    EXPECT_EQ(cache.counts().replayed, 5U);
    expect_all();
    expect_sums(eye.counts());
    return eye.counts();
  }
};
MONITORED_ON_ALL_DEVICES(overrun_cases);

TEST_P(overrun_cases, T06_a_ring_of_one_record_is_used_again_and_again) {
  tapped_model model{1, 4};
  for (const bool thread : {false, true}) {
    monitor_options how = small();
    how.slots = 1;
    how.ring_bytes = 16 + marker_bytes;
    how.thread = thread;
    monitor eye{on.opened, how};
    eye.watch({"resid_post", row_mode::all()});
    book = std::make_shared<test::kept_book>();
    send_here(eye);
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    expected.clear();
    steps = 0;
    for (int i = 0; i < 200; ++i) run(cache, eye, model, 1, "resid_post");
    eye.flush();
    eye.stop();
    expect_all();
    EXPECT_EQ(eye.counts().published, 200U);
    EXPECT_EQ(eye.counts().lost + eye.counts().mislabelled, 0U);
  }
}

TEST_P(overrun_cases, T07_a_lap_that_was_missed_is_seen_and_the_next_step_is_right) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  tapped_model model{1, 4};
  monitor_options how = small();
  how.slots = 2;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  using kind = publication_fault;
  for (const auto what : {kind::overwritten, kind::overwritten_twice}) {
    run(cache, eye, model, 2, "*");
    eye.flush();
    test::next_fault = {what, 1};
    run(cache, eye, model, 2, "*");
    expected.pop_back();
    eye.flush();
    run(cache, eye, model, 2, "*");
    eye.flush();
  }
  EXPECT_EQ(eye.counts().overwritten, 2U);
  expect_all();
}

TEST_P(overrun_cases, T07_one_record_more_than_the_ring_holds_costs_the_one_it_lies_on) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  const tap_counts counts = over_by(1);
  EXPECT_EQ(counts.overwritten, 1U);
  EXPECT_EQ(counts.lost, 1U);
}

// The same slot again, and of the same parity.
TEST_P(overrun_cases, T07_twice_the_ring_and_one_more_costs_all_of_it_and_is_counted) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  const tap_counts counts = over_by(5);
  EXPECT_EQ(counts.overwritten, 4U);
  EXPECT_EQ(counts.lost, 4U);
}

}  // namespace
}  // namespace reprise
