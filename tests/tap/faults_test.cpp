// A publication that is lost, late, overwritten or not what was planned costs its own record: it is
// counted, and every other one is right. Each publication of a short run, in turn.
#include "tests/support/sanitized.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::next_fault;
using test::publication_fault;
using test::tapped_model;

// How the run goes: with recordings or without, through a ring that has room for all of it or for a
// step and a half.
struct way {
  bool recorded;
  bool wraps;
  bool thread;
  std::size_t flights = 32;
};
constexpr way ways[] = {{true, false, false},
                        {true, true, false},
                        {true, true, true},
                        {false, false, false},
                        {false, true, true}};

class lost_publications : public test::monitored {
 protected:
  using kind = publication_fault::kind;
  static constexpr int layers = 2, marks = 2 * layers, all_steps = 6;
  static constexpr std::uint64_t all = marks * all_steps;
  static constexpr std::int64_t rows = 3, width = 5;
  static constexpr std::uint64_t stride = test::sanitized ? 5 : 1;

  void SetUp() override {
    if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
    const tapped_model like{layers, width};
    for (std::uint64_t step = 0; step < all_steps; ++step) {
      inputs.push_back(test::tap_bench::values(rows * width, step));
      for (const auto& mark : on.plainly(like, inputs.back())) {
        for (auto& record : test::records_of(mark, row_mode::kind::all, step, {})) {
          right.push_back(std::move(record));
        }
      }
    }
    ASSERT_EQ(right.size(), all);
  }

  // The run, in which one publication meets this.
  tap_counts with(const publication_fault& fault, const way& how) {
    tapped_model model{layers, width};
    monitor_options options = small();
    options.thread = how.thread;
    options.flights = how.flights;
    if (how.wraps) {
      options.slots = 6;
      options.ring_bytes = 6 * 80 + 16;  // 60 bytes of rows and the marker, padded, are 80
      options.flights = how.recorded ? 3 : 5;
    }
    monitor eye{on.opened, options};
    eye.watch({"*", row_mode::all()});
    book = std::make_shared<test::kept_book>();
    send_here(eye);
    replay_cache cache{on.opened, {.record = how.recorded}};
    cache.observe(eye.observer());
    next_fault = fault;
    for (std::vector<float>& x : inputs) on.run(cache, model, x);
    eye.flush();
    eye.stop();
    const tap_counts counts = eye.counts();
    expect_sums(counts);
    EXPECT_EQ(counts.planned, all);
    EXPECT_EQ(counts.lost + counts.records, all);
    if (how.wraps && !how.thread) {
      EXPECT_GT(counts.reserve_waits, 0U) << "the ring is too large";
    }
    return counts;
  }
  void expect_all_but(std::uint64_t missing) {
    expected = right;
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(missing));
    expect_all();
  }
  // Each publication in turn, in every way: its record is missing, and it is counted as this.
  void expect_each_costs_its_own(publication_fault fault, std::uint64_t tap_counts::*counted) {
    for (const way& how : ways) {
      for (fault.n = 0; fault.n < all; fault.n += stride) {
        SCOPED_TRACE(testing::Message()
                     << "publication " << fault.n << (how.recorded ? "" : ", eager")
                     << (how.wraps ? ", wrapped" : "") << (how.thread ? ", by a thread" : ""));
        const tap_counts counts = with(fault, how);
        EXPECT_EQ(counts.lost, 1U);
        EXPECT_EQ(counts.*counted, 1U);
        EXPECT_EQ(counts.overwritten + counts.mismatched + counts.mislabelled,
                  counted == &tap_counts::lost ? 0U : 1U);
        expect_all_but(fault.n);
        if (HasFailure()) return;
      }
    }
  }

  std::vector<std::vector<float>> inputs;
  std::vector<test::expected_record> right;
};
MONITORED_ON_ALL_DEVICES(lost_publications);

TEST_P(lost_publications, cost_their_record_alone_wherever_they_are) {
  expect_each_costs_its_own({kind::lost}, &tap_counts::lost);
}

TEST_P(lost_publications, that_a_later_lap_has_overwritten_are_seen_by_their_tag) {
  expect_each_costs_its_own({kind::overwritten}, &tap_counts::overwritten);
  expect_each_costs_its_own({kind::overwritten_twice}, &tap_counts::overwritten);
}

TEST_P(lost_publications, of_another_point_than_planned_are_no_records) {
  expect_each_costs_its_own({kind::other_point}, &tap_counts::mismatched);
}

TEST_P(lost_publications, of_fewer_rows_than_planned_are_no_records) {
  expect_each_costs_its_own({kind::fewer_rows}, &tap_counts::mismatched);
}

TEST_P(lost_publications, whose_marker_names_another_replay_are_no_records) {
  expect_each_costs_its_own({kind::other_replay}, &tap_counts::mislabelled);
}

TEST_P(lost_publications, whose_marker_names_another_point_are_no_records) {
  expect_each_costs_its_own({kind::marker_of_other_point}, &tap_counts::mislabelled);
}

// A word that comes before its flight is given up is in time; one that comes behind that is
// nobody's.
TEST_P(lost_publications, that_are_only_late_cost_no_other_either) {
  std::uint64_t in_time = 0;
  std::uint64_t late = 0;
  for (const way& how : ways) {
    for (const std::uint64_t by : {1U, 2U, 5U}) {
      for (std::uint64_t n = 0; n < all; n += stride) {
        SCOPED_TRACE(testing::Message() << "publication " << n << " by " << by);
        const tap_counts counts = with({kind::delayed, n, by}, how);
        ASSERT_LE(counts.lost, 1U);
        if (counts.lost == 0) {
          ++in_time;
          expected = right;
          expect_all();
        } else {
          ++late;
          expect_all_but(n);
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(in_time, 0U);
  EXPECT_GT(late, 0U);
}

// A word and a payload from elsewhere lie where a producer is still to publish: its record may be
// lost, but until it has run its plan words and its room are nobody else's.
TEST_P(lost_publications, that_others_anticipate_keep_their_room_until_they_have_come) {
  std::uint64_t lost = 0;
  for (const bool thread : {false, true}) {
    for (const bool recorded : {true, false}) {
      for (std::uint64_t n = 0; n < all; n += stride) {
        SCOPED_TRACE(testing::Message() << "publication " << n << (recorded ? "" : ", eager")
                                        << (thread ? ", by a thread" : ""));
        const tap_counts counts = with({kind::run_away, n, 1}, {recorded, false, thread, 2});
        ASSERT_LE(counts.lost, 1U);
        lost += counts.lost;
        if (counts.lost == 0) {
          expected = right;
          expect_all();
        } else {
          EXPECT_EQ(counts.mismatched, 1U);
          expect_all_but(n + 1);
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_TRUE(lost != 0 || GetParam() == "cpu");
}

// The word of the lap before stays in its slot until the new one comes: it must not be taken for
// it.
TEST_P(lost_publications, leave_the_word_of_an_earlier_lap_and_that_is_not_taken) {
  tapped_model model{2, 4};
  monitor_options how = small();
  how.slots = 4;
  monitor eye{on.opened, how};
  eye.watch({"*", row_mode::all()});
  send_here(eye);
  replay_cache cache{on.opened};
  cache.observe(eye.observer());
  for (int i = 0; i < 6; ++i) {
    next_fault = {i == 3 ? kind::lost : kind::none, 2};
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
