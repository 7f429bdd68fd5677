// T15: every pair of row modes on two points of one step, on and off, replayed and eager, with
// requests and without: what was planned is what is published, in number, size and order.
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::expected_record;
using test::tapped_model;

// What one point of the step is to give.
struct cell {
  const char* name;
  row_mode mode;
  bool enabled = true;
};

class row_cells : public test::monitored {
 protected:
  static constexpr std::int64_t rows = 6, width = 5, prefix_rows = 3;
  static constexpr int chunks = 3;

  // The records of a mark under a mode, by rules that are plain to see.
  static std::vector<expected_record> records_under(const test::plain_marks::seen& of,
                                                    const row_mode& mode, std::uint64_t step,
                                                    const std::vector<request_rows>& requests) {
    using kind = row_mode::kind;
    if (mode.what() == kind::none) return {};
    if (mode.what() == kind::prefix) {
      std::vector<expected_record> cut;
      std::int64_t left = prefix_rows;
      for (expected_record& one : test::records_of(of, kind::all, step, requests)) {
        one.rows = std::min(one.rows, left);
        left -= one.rows;
        one.values.resize(static_cast<std::size_t>(one.rows * width));
        if (one.rows != 0) cut.push_back(std::move(one));
      }
      return cut;
    }
    if (!requests.empty()) {
      const bool chunked = mode.what() == kind::chunked;
      return test::records_of(of, chunked ? kind::real : mode.what(), step, requests);
    }
    if (mode.what() != kind::last) return test::records_of(of, kind::all, step, requests);
    const auto last_row = of.values.end() - width;
    return {{of.kind, of.layer, step, no_request, rows - 1, 1, {last_row, of.values.end()}}};
  }

  // Whole units of 16 bytes, behind a marker: what the plan has to reserve.
  static std::uint64_t reserved_under(const row_mode& mode, std::vector<expected_record> records) {
    std::uint64_t bytes = 0;
    if (mode.what() == row_mode::kind::prefix) {
      bytes = rows * width * sizeof(float);  // the device says how much of it
    } else {
      for (const expected_record& one : records) bytes += one.values.size() * sizeof(float);
    }
    return (bytes + 16 + 15) / 16 * 16;
  }
};
MONITORED_ON_ALL_DEVICES(row_cells);

TEST_P(row_cells, T15_publish_what_is_planned_for_every_pair_of_them) {
  pool memory{on.opened, "n"};
  const buffer<std::int64_t> n{memory, 1, on.work};
  const std::int64_t says = prefix_rows;
  copy(on.work, read<std::int64_t>{view<const std::int64_t>{&says, 1}}, write<std::int64_t>{n});
  on.work.synchronize();
  const std::vector<cell> cells{{"none", row_mode::none()},
                                {"static", row_mode::all()},
                                {"prefix", row_mode::prefix(n.all().data())},
                                {"chunked", row_mode::chunked(chunks)},
                                {"real", row_mode::real()},
                                {"last", row_mode::last()},
                                {"off", row_mode::last(), false}};
  // Chunks of two rows; place 1 has no request, and that of place 2 has one row.
  const std::vector<request_rows> batch{{70, 4, 1, 2, 11}, {71, 0, 2, 0, 5}};
  for (const bool recorded : {true, false}) {
    replay_cache cache{on.opened, {.record = recorded}};
    monitor eye{on.opened, small()};
    send_here(eye);
    cache.observe(eye.observer());
    tapped_model model{1, width};
    for (const cell& pre : cells) {
      for (const cell& post : cells) {
        for (const auto& requests : {std::vector<request_rows>{}, batch}) {
          SCOPED_TRACE(std::string{pre.name} + ", " + post.name +
                       (recorded ? ", recorded" : ", eager") + (requests.empty() ? "" : ", batch"));
          eye.watch({{"resid_pre", pre.mode}, {"resid_post", post.mode}});
          eye.enable(pre.enabled && post.enabled ? "*"
                     : pre.enabled               ? "resid_pre"
                     : post.enabled              ? "resid_post"
                                                 : "none");
          const tap_counts before = eye.counts();
          expected.clear();
          book->records.clear();
          std::uint64_t publications = 0, reserved = 0, record_bytes = 0;
          for (int i = 0; i < 2; ++i) {
            std::vector<float> x = test::tap_bench::values(rows * width, steps);
            for (const auto& mark : on.plainly(model, x)) {
              const cell& of = mark.kind == "resid_pre" ? pre : post;
              const bool fires = of.enabled && of.mode.what() != row_mode::kind::none;
              if (!fires) continue;
              const auto records = records_under(mark, of.mode, steps, requests);
              ++publications;
              reserved += reserved_under(of.mode, records);
              for (const expected_record& one : records) {
                record_bytes += one.values.size() * sizeof(float);
                expected.push_back(one);
              }
            }
            ++steps;
            eye.plan_step(requests);
            on.run(cache, model, x);
          }
          eye.flush();
          expect_all();
          const tap_counts after = eye.counts();
          EXPECT_EQ(after.planned - before.planned, publications);
          EXPECT_EQ(after.published - before.published, publications);
          EXPECT_EQ(after.reserved_bytes - before.reserved_bytes, reserved);
          EXPECT_EQ(after.published_bytes - before.published_bytes, reserved);
          EXPECT_EQ(after.drained_bytes - before.drained_bytes, reserved);
          EXPECT_EQ(after.record_bytes - before.record_bytes, record_bytes);
          EXPECT_EQ(after.lost + after.dropped + after.mislabelled + after.clamped, 0U);
          if (HasFailure()) return;
        }
      }
    }
    const std::uint64_t runs = 2 * cells.size() * cells.size() * 2;
    // One recording for each list of specs; but where no point of either is on (both none, or both
    // off, with requests and without) it is the step's own, made once.
    EXPECT_EQ(cache.counts().captured, recorded ? runs / 2 - 4 + 1 : 0U);
    EXPECT_EQ(cache.counts().replayed, recorded ? runs / 2 + 4 - 1 : 0U);
    EXPECT_EQ(cache.counts().eager, recorded ? 0U : runs);
    steps = 0;
  }
}

}  // namespace
}  // namespace reprise
