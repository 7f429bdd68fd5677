// A publication that is lost, late or overwritten costs its own record: it is counted, and every
// later one is right.
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::next_fault;
using test::publication_fault;
using test::tapped_model;

class lost_publications : public test::monitored {
 protected:
  static constexpr int layers = 3, marks = 2 * layers, all_steps = 12;

  // The `n`-th publication meets this; its record is missing, and nothing else.
  tap_counts with(publication_fault::kind what, std::uint64_t n, bool recorded = true) {
    tapped_model model{layers, 5};
    monitor eye{on.opened, small()};
    eye.watch({"*", row_mode::all()});
    send_here(eye);
    replay_cache cache{on.opened, {.record = recorded}};
    cache.observe(eye.observer());
    expected.clear();
    book->records.clear();
    steps = 0;
    next_fault = {what, n};
    for (int i = 0; i < all_steps; ++i) {
      run(cache, eye, model, 3, "*");
      if (i % 4 == 3) on.work.synchronize();
    }
    eye.flush();
    const tap_counts counts = eye.counts();
    expect_sums(counts);
    return counts;
  }
  void expect_one_missing() {
    ASSERT_EQ(book->records.size() + 1, expected.size());
    std::size_t at = 0;
    while (at < book->records.size() && book->records[at].kind == expected[at].kind &&
           book->records[at].about.layer == expected[at].layer &&
           book->records[at].about.step == expected[at].step) {
      ++at;
    }
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
    expect_all();
  }
};
MONITORED_ON_ALL_DEVICES(lost_publications);

TEST_P(lost_publications, cost_their_record_alone_wherever_they_are) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  for (const bool recorded : {true, false}) {
    for (std::uint64_t n = 0; n < marks * all_steps; n += 7) {
      EXPECT_EQ(with(publication_fault::lost, n, recorded).lost, 1U) << n;
      expect_one_missing();
    }
    EXPECT_EQ(with(publication_fault::lost, marks * all_steps - 1, recorded).lost, 1U);
    expect_one_missing();
  }
}

TEST_P(lost_publications, that_are_only_late_cost_no_other_either) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  for (std::uint64_t n = 0; n < marks * (all_steps - 1); n += 5) {
    const tap_counts counts = with(publication_fault::delayed, n);
    if (counts.lost == 0) {
      expect_all();  // it came in time
    } else {
      EXPECT_EQ(counts.lost, 1U);
      expect_one_missing();
    }
  }
}

TEST_P(lost_publications, that_a_later_lap_has_overwritten_are_seen_by_their_tag) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  for (const auto what : {publication_fault::overwritten, publication_fault::overwritten_twice}) {
    for (std::uint64_t n = 0; n < marks * all_steps; n += 11) {
      const tap_counts counts = with(what, n);
      EXPECT_EQ(counts.lost, 1U);
      EXPECT_EQ(counts.overwritten, 1U);
      expect_one_missing();
    }
  }
}

TEST_P(lost_publications, of_another_point_than_planned_are_no_records) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  const tap_counts counts = with(publication_fault::other_point, 8);
  EXPECT_EQ(counts.mismatched, 1U);
  expect_one_missing();
}

// The word of the lap before stays in its slot until the new one comes: it must not be taken for
// it.
TEST_P(lost_publications, leave_the_word_of_an_earlier_lap_and_that_is_not_taken) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  tapped_model model{2, 4};
  monitor_options how = small();
  how.slots = 4;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int i = 0; i < 6; ++i) {
    next_fault = {i == 3 ? publication_fault::lost : publication_fault::none, 2};
    run(cache, eye, model, 2, "*");
    eye.flush();
  }
  EXPECT_EQ(eye.counts().lost, 1U);
  EXPECT_EQ(book->records.size(), 23U);
  expected.erase(expected.begin() + 14);
  expect_all();
}

}  // namespace
}  // namespace reprise
