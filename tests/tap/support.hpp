// A small model with marks, what keeps the records of it, and a plain run to compare with.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reprise/kernel/launch.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/tap/monitor.hpp"
#include "tests/support/devices.hpp"
#include "tests/tap/kernels.hpp"

namespace reprise::test {

struct kept_record {
  tap_record about;  // its views are void
  std::string kind;
  std::vector<float> values;
};

// What was given to a sink, or to a function; what it refuses it throws at.
struct kept_book {
  std::vector<kept_record> records;
  int opened = 0, flushed = 0, closed = 0;
  std::function<bool(const tap_record&)> refuses = [](const tap_record&) { return false; };

  void keep(const tap_record& one) {
    if (refuses(one)) throw error{"the disk is full"};
    kept_record kept{one, std::string{one.kind}, std::vector<float>(one.bytes.size() / 4)};
    if (!one.bytes.empty()) std::memcpy(kept.values.data(), one.bytes.data(), one.bytes.size());
    records.push_back(std::move(kept));
  }
};

class keeping_sink final : public record_sink {
 public:
  explicit keeping_sink(std::shared_ptr<kept_book> in) : in_{std::move(in)} {}

  void open(std::string_view) override { ++in_->opened; }
  void write(std::span<const tap_record> records) override {
    for (std::size_t i = 0; i < records.size(); ++i) {
      try {
        in_->keep(records[i]);
      } catch (const error& refused) {
        throw sink_error{sink_trouble::records, refused.what(), i};
      }
    }
  }
  void flush() override { ++in_->flushed; }
  void close() override { ++in_->closed; }

 private:
  std::shared_ptr<kept_book> in_;
};

// x [rows, width] goes through layers that each add their number in place, and is marked before and
// after; `final` is marked at the end.
class tapped_model {
 public:
  tapped_model(int layers, std::int64_t width) : layers_{layers}, width_{width} {}

  int layers_;
  std::int64_t width_;
  signature declared{"tapped"};
  const input<float> x = declared.in<float>("x", {any, width_});
  const output<float> y = declared.out<float>("y");
  step what = make();
  int runs = 0;  // of the body

 private:
  step make() {
    return step{declared, [this](step_scope& run) {
                  ++runs;
                  const dims shape = run.shape(x);
                  const view<float> residual = run.scratch<float>(shape);
                  copy(run, read(run[x]), write(residual));
                  for (int layer = 0; layer < layers_; ++layer) {
                    run.mark({"resid_pre", layer}, as_tensor(residual, shape));
                    launch(run, raise_all, inout(residual), static_cast<float>(layer + 1));
                    run.mark({"resid_post", layer}, as_tensor(residual, shape));
                  }
                  copy(run, read(residual), write(run.make(y, shape)));
                }};
  }
};

// Copies what is marked to the host at once; steps under it run eagerly.
class plain_marks final : public mark_observer {
 public:
  struct seen {
    std::string kind;
    int layer;
    dims shape;
    std::vector<float> values;
  };
  void on_mark(step_scope& run, point where, const tensor_ref& what) override {
    seen one{std::string{where.kind}, where.layer, what.shape,
             std::vector<float>(what.shape.count())};
    copy_bytes(run, what.data, reinterpret_cast<std::byte*>(one.values.data()), what.bytes());
    const stream_ref on = run;
    on.synchronize();
    all.push_back(std::move(one));
  }
  std::vector<seen> all;
};

// A device, a stream, and counts of every call.
class tap_bench {
 public:
  explicit tap_bench(const std::string& spec)
      : opened{open_device(spec, {.threads = 1, .counts = calls}, tap_kernels())} {}

  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  device opened;
  stream work{opened};

  // Values that differ in every element and step, and that floats hold exactly.
  static std::vector<float> values(std::size_t count, std::uint64_t step) {
    std::vector<float> made(count);
    for (std::size_t i = 0; i < count; ++i) {
      made[i] = static_cast<float>((step * 7919 + i * 31) % 65'536);
    }
    return made;
  }

  // What a separate run of this step marks, with nothing captured.
  std::vector<plain_marks::seen> plainly(const tapped_model& like, const std::vector<float>& x) {
    tapped_model model{like.layers_, like.width_};
    replay_cache cache{opened, {.record = false}};
    const auto marks = std::make_shared<plain_marks>();
    cache.observe(marks);
    std::vector<float> copied = x;
    run(cache, model, copied);
    work.synchronize();
    return marks->all;
  }

  step_result run(replay_cache& cache, tapped_model& model, std::vector<float>& x) {
    return cache.run(work, model.what, {model.x.from_host(x)});
  }
};

// What a record should be.
struct expected_record {
  std::string kind;
  int layer;
  std::uint64_t step, request;
  std::int64_t first_row, rows;
  std::vector<float> values;
};

// The records of one plain mark, by a planner that is slow and obviously right.
inline std::vector<expected_record> records_of(const plain_marks::seen& of, row_mode::kind mode,
                                               std::uint64_t step,
                                               const std::vector<request_rows>& requests) {
  const std::int64_t width = of.shape[1];
  const std::int64_t all = of.shape[0];
  std::vector<expected_record> made;
  const auto take = [&](std::uint64_t request, std::int64_t token, std::int64_t first,
                        std::int64_t rows) {
    const auto begin = of.values.begin() + first * width;
    made.push_back({of.kind, of.layer, step, request, token, rows, {begin, begin + rows * width}});
  };
  const auto of_row = [&](std::int64_t row) -> const request_rows* {
    for (const request_rows& r : requests) {
      if (row >= r.first && row < r.first + r.count) return &r;
    }
    return nullptr;
  };
  if (mode == row_mode::kind::all) {
    for (std::int64_t row = 0; row < all;) {
      const request_rows* const mine = of_row(row);
      std::int64_t end = row + 1;
      while (end < all && of_row(end) == mine) ++end;
      take(mine == nullptr ? no_request : mine->request, mine == nullptr ? row : mine->first_token,
           row, end - row);
      row = end;
    }
    return made;
  }
  for (const request_rows& r : requests) {
    if (r.count == 0) continue;
    const bool last = mode == row_mode::kind::last;
    take(r.request, r.first_token + (last ? r.count - 1 : 0), r.first + (last ? r.count - 1 : 0),
         last ? 1 : r.count);
  }
  return made;
}

// A monitor over a model, with what it should have said by now.
class monitored : public ::testing::TestWithParam<std::string> {
 protected:
  tap_bench on{GetParam()};
  std::shared_ptr<kept_book> book = std::make_shared<kept_book>();
  std::vector<expected_record> expected;
  std::uint64_t steps = 0;

  monitored() { next_fault = {publication_fault::none}; }

  static monitor_options small() {
    monitor_options how;
    how.ring_bytes = 1U << 16;
    how.staging_bytes = 1U << 16;
    how.slots = 64;
    how.flights = 8;
    how.most_points = 32;
    how.most_runs = 64;
    how.thread = false;
    how.markers = true;
    return how;
  }
  void send_here(monitor& eye) { send_to(eye, book); }
  static void send_to(monitor& eye, std::shared_ptr<kept_book> to) {
    eye.deliver_to([to = std::move(to)](const tap_record& one) { to->keep(one); });
  }
  bool has_cpu_bodies() const { return device_ref{on.opened}.bodies() == device_kind::cpu; }

  // One step on values of its own, and what `watched` points of it should give.
  step_result run(replay_cache& cache, monitor& eye, tapped_model& model, std::int64_t rows,
                  const point_set& watched, row_mode::kind mode = row_mode::kind::all,
                  const std::vector<request_rows>& requests = {}) {
    std::vector<float> x = tap_bench::values(static_cast<std::size_t>(rows * model.width_), steps);
    for (const plain_marks::seen& one : on.plainly(model, x)) {
      if (!watched.contains({one.kind, one.layer})) continue;
      for (expected_record& record : records_of(one, mode, steps, requests)) {
        expected.push_back(std::move(record));
      }
    }
    ++steps;
    eye.plan_step(requests);
    return on.run(cache, model, x);
  }
  void expect_all() { expect_all(*book); }
  void expect_all(const kept_book& in) {
    ASSERT_EQ(in.records.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const kept_record& got = in.records[i];
      const expected_record& want = expected[i];
      const bool same = got.kind == want.kind && got.about.layer == want.layer &&
                        got.about.step == want.step && got.about.request == want.request &&
                        got.about.first_row == want.first_row && got.about.rows == want.rows;
      ASSERT_TRUE(same && got.values == want.values)
          << i << ": " << got.kind << ":" << got.about.layer << " step " << got.about.step
          << " request " << got.about.request << ", expected " << want.kind << ":" << want.layer
          << " step " << want.step << " request " << want.request;
    }
  }
  static void expect_sums(const tap_counts& counts) {
    EXPECT_EQ(counts.planned, counts.published + counts.lost);
    std::uint64_t planned = 0, published = 0, lost = 0, dropped = 0;
    for (const point_counts& one : counts.points) {
      planned += one.planned;
      published += one.published;
      lost += one.lost;
      dropped += one.dropped;
    }
    EXPECT_EQ(planned, counts.planned);
    EXPECT_EQ(published, counts.published);
    EXPECT_EQ(lost, counts.lost);
    EXPECT_EQ(dropped, counts.dropped);
  }
};

#define MONITORED_ON_ALL_DEVICES(suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(devices, suite, ::testing::ValuesIn(test::devices_under_test()), \
                           [](const auto& p) { return test::test_name(p.param); })

}  // namespace reprise::test
