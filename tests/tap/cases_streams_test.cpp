// Steps on two streams publish into one ring, which is used again by either: what is lost on one
// costs nothing on the other.
#include "tests/support/sanitized.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::next_fault;
using test::publication_fault;
using test::tapped_model;

class two_streams : public test::monitored {
 protected:
  using kind = publication_fault::kind;
  static constexpr int layers = 1, marks = 2 * layers, all_steps = 8;
  static constexpr std::uint64_t all = marks * all_steps;
  static constexpr std::int64_t rows = 3, width = 5;
  static constexpr std::uint64_t stride = test::sanitized ? 5 : 1;

  // Steps take turns on the streams, each with a recording of its own, so that nothing but the
  // ring stands between them.
  tap_counts with(const publication_fault& fault, bool thread) {
    tapped_model here{layers, width};
    tapped_model there{layers, width};
    const stream other{on.opened};
    monitor_options how = small();
    how.thread = thread;
    how.slots = 5;
    how.ring_bytes = 5 * 80 + 16;  // two steps and a half
    how.flights = 4;
    monitor eye{on.opened, how};
    eye.watch({"*", row_mode::all()});
    book = std::make_shared<test::kept_book>();
    send_here(eye);
    replay_cache one{on.opened};
    replay_cache two{on.opened};
    one.observe(eye.observer());
    two.observe(eye.observer());
    next_fault = fault;
    for (std::uint64_t step = 0; step < all_steps; ++step) {
      const bool is_here = step % 3 != 1;
      const stream_ref at = is_here ? static_cast<stream_ref>(on.work) : other;
      tapped_model& model = is_here ? here : there;
      std::vector<float> x = test::tap_bench::values(rows * width, step);
      (is_here ? one : two).run(at, model.what, {model.x.from_host(x)});
    }
    eye.flush();
    eye.stop();
    other.synchronize();
    EXPECT_EQ(one.counts().captured + two.counts().captured, 2U);
    EXPECT_EQ(one.counts().replayed + two.counts().replayed, all_steps - 2U);
    const tap_counts counts = eye.counts();
    expect_sums(counts);
    EXPECT_EQ(counts.planned, all);
    EXPECT_EQ(counts.mislabelled, 0U);
    return counts;
  }

  void expect_steps() {
    const tapped_model like{layers, width};
    expected.clear();
    for (std::uint64_t step = 0; step < all_steps; ++step) {
      const std::vector<float> x = test::tap_bench::values(rows * width, step);
      for (const auto& mark : on.plainly(like, x)) {
        for (auto& record : test::records_of(mark, row_mode::kind::all, step, {})) {
          expected.push_back(std::move(record));
        }
      }
    }
  }
  // Streams are in no order, so which publication was the n-th only the run knows.
  void expect_all_but_one() {
    ASSERT_EQ(book->records.size() + 1, expected.size());
    std::size_t at = 0;
    while (at < book->records.size() && book->records[at].kind == expected[at].kind &&
           book->records[at].about.step == expected[at].step) {
      ++at;
    }
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
    expect_all();
  }
};
MONITORED_ON_ALL_DEVICES(two_streams);

TEST_P(two_streams, publish_into_one_ring) {
  for (const bool thread : {false, true}) {
    const tap_counts counts = with({kind::none}, thread);
    EXPECT_EQ(counts.lost, 0U);
    EXPECT_EQ(counts.reserved_bytes, counts.drained_bytes);
    expect_steps();
    expect_all();
  }
}

TEST_P(two_streams, lose_one_record_alone_wherever_it_is) {
  if (!has_cpu_bodies()) GTEST_SKIP() << "faults are in CPU bodies";
  for (const auto what : {kind::lost, kind::overwritten, kind::other_point}) {
    for (const bool thread : {false, true}) {
      for (std::uint64_t n = 0; n < all; n += stride) {
        SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(what) << " publication "
                                        << n << (thread ? ", by a thread" : ""));
        EXPECT_EQ(with({what, n}, thread).lost, 1U);
        expect_steps();
        expect_all_but_one();
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace reprise
