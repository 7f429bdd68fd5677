#include "bench/replay/replay_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "bench/replay/contestants.hpp"
#include "bench/replay/raw_cuda.hpp"
#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

constexpr std::int64_t most_nodes = 100'000;
constexpr int most_repeats = 1'000'000;
constexpr int warm_up_rounds = 3;  // the first records; all are compared, none is measured

void require(const replay_bench_options& options) {
  const auto fits = [](std::int64_t n) { return n >= 1 && n <= most_nodes; };
  if (options.nodes.empty() || !std::ranges::all_of(options.nodes, fits)) {
    throw usage_error{
        fmt::format("--nodes must be whole numbers from 1 to {}, such as 10,100,1000", most_nodes)};
  }
  if (options.repeats < 1 || options.repeats > most_repeats) {
    throw usage_error{fmt::format("--repeats must be a whole number from 1 to {}", most_repeats)};
  }
}

// All ways of one number of nodes, measured round by round.
class contest_rounds {
 public:
  contest_rounds(stream_ref stream, std::span<contestant> all, raw_timer* timer)
      : stream_{stream}, all_{all}, timer_{timer} {}

  void call_and_compare() {
    std::vector<float> expected[2];  // by staged; the eager run of each comes first
    for (contestant& c : all_) {
      if (!c.row.measured) continue;
      call(c);
      const std::vector<float> got = chain_output(stream_, c.result());
      std::vector<float>& of_eager = expected[c.row.staged ? 1 : 0];
      if (c.row.how == contest::eager) of_eager = got;
      c.row.equal = c.row.equal && same_bits(got, of_eager);
    }
  }

  // Another one begins each time, so that nobody always follows the same neighbour from idle.
  void measure(std::size_t round) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      contestant& c = all_[(round + i) % all_.size()];
      if (c.row.measured) measure(c);
    }
  }

 private:
  static void call(contestant& c) {
    c.call();
    ++c.row.calls;
  }

  // The queue is empty at each call: a full one would make the host wait for the device.
  void measure(contestant& c) {
    stream_.synchronize();
    const double start = now_us();
    call(c);
    const double returned = now_us();
    stream_.synchronize();
    const double done = now_us();
    c.host_us.push_back(returned - start);
    if (timer_ == nullptr) {
      c.device_us.push_back(done - start);
      return;
    }
    // A call of its own, so that recording the events is no part of the host time.
    timer_->start();
    call(c);
    timer_->stop();
    stream_.synchronize();
    c.device_us.push_back(timer_->us());
  }

  stream_ref stream_;
  std::span<contestant> all_;
  raw_timer* timer_;
};

void measure_chain(pool& memory, stream_ref stream, void* native_stream, std::int64_t nodes,
                   const replay_bench_options& options, const progress& tell,
                   std::vector<replay_row>& rows) {
  host_block block{stream.device()};
  contestants field{memory, stream, block, nodes, native_stream};
  std::unique_ptr<raw_timer> timer;
  if (native_stream != nullptr) timer = std::make_unique<raw_timer>(native_stream);
  contest_rounds rounds{stream, field.all(), timer.get()};

  const std::string what = fmt::format("{} nodes", nodes);
  std::size_t round = 0;
  const auto next_block = [&] { block.fill(++round); };
  for (int i = 0; i < warm_up_rounds; ++i) {
    next_block();
    rounds.call_and_compare();
  }
  const auto repeats = static_cast<std::size_t>(options.repeats);
  const std::size_t told_every = std::max<std::size_t>(1, repeats / 50);
  for (std::size_t i = 0; i < repeats; ++i) {
    if (i % told_every == 0) tell(what, i, repeats);
    next_block();
    rounds.measure(i);
  }
  next_block();
  rounds.call_and_compare();
  tell(what, repeats, repeats);

  for (contestant& c : field.all()) {
    c.row.host_us = spread_of(std::move(c.host_us));
    c.row.device_us = spread_of(std::move(c.device_us));
    if (c.counts) c.row.counts = c.counts();
    rows.push_back(c.row);
  }
}

const replay_row* bare_row(const std::vector<replay_row>& rows, std::int64_t nodes, bool staged) {
  const auto found = std::ranges::find_if(rows, [&](const replay_row& row) {
    return row.how == contest::bare && row.measured && row.nodes == nodes && row.staged == staged;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<added_time> added_by_replays(const std::vector<replay_row>& rows) {
  std::vector<added_time> added;
  for (const replay_row& row : rows) {
    if (row.how != contest::replay) continue;
    const replay_row* const bare = bare_row(rows, row.nodes, false);
    const replay_row* const with_copy = bare_row(rows, row.nodes, row.staged);
    if (bare == nullptr || with_copy == nullptr) continue;
    added.push_back({row.nodes, row.facts, row.staged, row.host_us.median - bare->host_us.median,
                     row.host_us.median - with_copy->host_us.median});
  }
  return added;
}

// What the cache must have counted if every call went as it should.
bool as_planned(const replay_row& row) {
  const step_counts& c = row.counts;
  if (row.how == contest::eager) {
    return c.captured == 0 && c.replayed == 0 && c.eager == row.calls;
  }
  return row.how == contest::bare ||
         (c.captured == 1 && c.replayed + 1 == row.calls && c.eager == 0);
}

std::string text_of(const replay_row& row) {
  return fmt::format("{} of {} nodes, {} facts, {}", name_of(row.how), row.nodes, row.facts,
                     row.staged ? "one staged block" : "nothing staged");
}

}  // namespace

std::string_view name_of(contest how) {
  switch (how) {
    case contest::eager: return "eager";
    case contest::bare: return "bare";
    case contest::replay: return "replay";
  }
  return "?";
}

std::string replay_bench_report::failure() const {
  for (const replay_row& row : rows) {
    if (!as_planned(row)) {
      return fmt::format(
          "{}: {} calls were counted as captured {}, replayed {}, eager {}; its figures are of "
          "something else, so mend that before reading them",
          text_of(row), row.calls, row.counts.captured, row.counts.replayed, row.counts.eager);
    }
    if (!row.equal) {
      return fmt::format(
          "{}: the output differs from that of the eager run; its figures are of other work, so "
          "report it with the command that showed it",
          text_of(row));
    }
  }
  return {};
}

replay_bench_report run_replay_bench(device_ref device, const replay_bench_options& options,
                                     const progress& tell) {
  require(options);
  stream work{device};
  pool memory{device, "bench replay"};
  void* const native = native_stream_of(work);

  replay_bench_report report;
  report.bare = native != nullptr;
  report.timed_by_events = native != nullptr;
  for (const std::int64_t nodes : options.nodes) {
    measure_chain(memory, work, native, nodes, options, tell, report.rows);
  }
  report.added = added_by_replays(report.rows);
  return report;
}

}  // namespace reprise::bench
