// Taps: a small ring, a thread that drains it, and steps on two streams whose tensors are written
// again at once; each record has what its step marked.
#include <cstring>
#include <utility>
#include <vector>

#include "reprise/tap/monitor.hpp"
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class tap_slip { none, count_written_in_flight };

struct taken_rows {
  std::string kind;
  std::uint64_t step;
  numbers values;
};

void keep_in(monitor& of, std::vector<taken_rows>& into) {
  of.deliver_to([&into](const tap_record& one) {
    taken_rows taken{std::string{one.kind}, one.step, numbers(one.bytes.size() / 4)};
    if (!one.bytes.empty()) std::memcpy(taken.values.data(), one.bytes.data(), one.bytes.size());
    into.push_back(std::move(taken));
  });
}

constexpr std::int32_t steps = 12;

// y = 2 x is marked, then made y 10 + 1 in its place, and marked again.
void marked_twice(step_scope& run, view<std::int32_t> y) {
  run.mark({"scaled", 0}, as_tensor(y, {static_cast<std::int64_t>(y.size()), 1}));
  launch(run, append_digit, inout(y), 1);
  run.mark({"appended", 0}, as_tensor(y, {static_cast<std::int64_t>(y.size()), 1}));
}

monitor_options small_ring() {
  monitor_options how;
  how.ring_bytes = 240;  // of two steps and a half
  how.staging_bytes = 1024;
  how.slots = 5;
  how.flights = 3;
  how.most_points = 4;
  how.most_runs = 8;
  how.markers = true;
  return how;
}

void tapped_steps(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  std::vector<taken_rows> taken;
  scaling scaled{at, 2, marked_twice};
  order(at.s, other);
  replay_cache cache{dev};
  monitor eye{dev, small_ring()};
  eye.watch({"*", row_mode::all()});
  keep_in(eye, taken);
  cache.observe(eye.observer());
  for (std::int32_t i = 0; i < steps; ++i) {
    const numbers in(few, i);
    const stream_ref on = i % 3 == 2 ? static_cast<stream_ref>(other) : at.s;
    const step_result done = cache.run(on, *scaled.what, {scaled.x.from_host(in)});
    require(done.how == (i == 0 ? ran::captured : ran::replayed), "a step ran in another way");
  }
  eye.flush();
  require_equal(static_cast<std::int64_t>(taken.size()), 2 * steps, "records");
  for (std::int32_t i = 0; i < steps; ++i) {
    const taken_rows& first = taken[static_cast<std::size_t>(2 * i)];
    const taken_rows& second = taken[static_cast<std::size_t>(2 * i + 1)];
    require(first.kind == "scaled" && second.kind == "appended", "records are in another order");
    require_equal(static_cast<std::int64_t>(second.step), i, "the step of a record");
    require_equal(first.values, numbers(few, 2 * i), "what was marked first");
    require_equal(second.values, numbers(few, 20 * i + 1), "what was marked second");
  }
  const tap_counts counts = eye.counts();
  require_equal(static_cast<std::int64_t>(counts.published), 2 * steps, "publications");
  require_equal(static_cast<std::int64_t>(counts.lost + counts.dropped), 0, "lost or dropped");
  order(other, at.s);
}

// How many rows a step has the device says, in a word that the host rewrites between the steps.
template <tap_slip made>
void tapped_prefixes(device_ref dev) {
  desk at{dev};
  const stream loader{dev};
  std::vector<taken_rows> taken;
  scaling scaled{at, 2, marked_twice};
  const buffer<std::int64_t> count{at.memory, 1, at.s};
  replay_cache cache{dev};
  monitor_options how = small_ring();
  how.thread = false;
  monitor eye{dev, how};
  eye.watch({"appended", row_mode::prefix(count.all().data())});
  keep_in(eye, taken);
  cache.observe(eye.observer());
  for (std::int64_t i = 1; i <= 3; ++i) {
    if (made != tap_slip::count_written_in_flight || i == 1) order(at.s, loader);
    copy(loader, read<std::int64_t>{view<const std::int64_t>{&i, 1}}, write{count});
    order(loader, at.s);
    const numbers in(few, 1);
    cache.run(at.s, *scaled.what, {scaled.x.from_host(in)});
  }
  eye.flush();
  require_equal(static_cast<std::int64_t>(taken.size()), 3, "records");
  for (std::size_t i = 0; i < taken.size(); ++i) {
    require_equal(taken[i].values, numbers(i + 1, 21), "the first rows");
  }
}

}  // namespace

std::vector<scenario> tap_scenarios() {
  return {
      {"tapped_steps",
       "Producers publish beside the model into a ring that is too small; each record is right.",
       tapped_steps,
       {"tap: joined a producer late", "tap: waited for room"},
       {}},
      {"tapped_prefixes",
       "How many rows are taken the device says, and each step has the count that was set for it.",
       tapped_prefixes<tap_slip::none>,
       {},
       {{"count_written_in_flight",
         "The count is set for the next step while a replay may still read it.",
         {"race"},
         tapped_prefixes<tap_slip::count_written_in_flight>}}},
  };
}

}  // namespace reprise::scenarios
