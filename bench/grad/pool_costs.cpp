#include "bench/grad/pool_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <utility>

#include "bench/grad/bare_launch.hpp"

namespace reprise::bench {

namespace {

constexpr int most_passes = 20;  // over all frames, a thousand calls each
constexpr int warm_up_passes = 3;
constexpr layer_shape small_layer{.inputs = 1, .rows = 1, .in = 64, .out = 64};

// So many ops, whose forwards are captured before any backward is: their frames share a pool.
class frames_in_a_pool {
 public:
  frames_in_a_pool(pool& memory, device_ref device, const call_counts& counts, int frames)
      : work_{device},
        timer_{work_, counts},
        sources_{memory, work_},
        bare_{memory, work_, sources_, small_layer.forward_nodes(), native_stream_of(work_)},
        memory_{memory} {
    for (int i = 0; i < frames; ++i) {
      ops_.emplace_back("in a pool", memory, work_, budget_, small_layer,
                        graphed_options{.conflict = recompute{}}, i);
    }
    forward_all();
    ops_.back().backward(tickets_.back());
  }
  ~frames_in_a_pool() { work_.synchronize(); }
  frames_in_a_pool(const frames_in_a_pool&) = delete;
  frames_in_a_pool& operator=(const frames_in_a_pool&) = delete;

  // The last frame is in use each time, so that the replay of the first has something to void.
  void round() {
    bare_.time(timer_);
    forward_last();
    forward_first(forwards_);
    forward_last();  // with nothing in between, and so not voided
    backward_last(backwards_);
  }

  void pass() {
    forward_all();
    forward_first(behind_all_);
    backward_last(voided_);
    ++passes_;
  }

  // What the first rounds took goes.
  void begin() {
    bare_.begin();
    for (timed_calls* one : {&forwards_, &behind_all_, &backwards_, &voided_}) *one = {};
  }

  pool_row report() {
    pool_row row;
    row.frames = static_cast<int>(ops_.size());
    const spread forward = spread_of(forwards_.us);
    const spread backward = spread_of(backwards_.us);
    const std::string in = fmt::format(", {} frames", row.frames);
    row.forward = figure_of("forward replay" + in, std::move(forwards_), {1, 0, 0},
                            fmt::format("bare, {} nodes", small_layer.forward_nodes()), bare_.us());
    row.forward_behind_all = figure_of("forward replay behind all" + in, std::move(behind_all_),
                                       {1, 0, 0}, "forward replay", forward);
    row.voided_backward = figure_of("first backward, all voided" + in, std::move(voided_),
                                    {2, 0, 0}, "backward replay", backward);
    // Each runs once more there, to be compared, and was captured once.
    row.first = counts_of(ops_.front(), 0, "first of" + in.substr(1));
    row.first.planned.forward_capture = row.first.planned.backward_capture = 1;
    row.first.planned.forward_replay = first_forwards_;
    row.last = counts_of(ops_.back(), row.frames - 1, "last of" + in.substr(1));
    row.last.planned.forward_capture = row.last.planned.backward_capture = 1;
    row.last.planned.forward_replay = last_forwards_;
    row.last.planned.backward_replay = last_backwards_ + 1;
    row.last.planned.stale_replay = row.last.planned.stale_by_pool = passes_;
    return row;
  }

 private:
  void forward_all() {
    tickets_.clear();
    for (subject& one : ops_) tickets_.push_back(one.forward().ticket);
    ++first_forwards_;
    ++last_forwards_;
  }
  void forward_first(timed_calls& into) {
    forward_result made;
    timer_.time(into, [&] { made = ops_.front().forward(); });
    ++first_forwards_;
  }
  void forward_last() {
    tickets_.back() = ops_.back().forward().ticket;
    ++last_forwards_;
  }
  void backward_last(timed_calls& into) {
    grad_result formed;
    timer_.time(into, [&] { formed = ops_.back().backward(tickets_.back()); });
    ++last_backwards_;
  }

  op_counts counts_of(subject& op, int seed, std::string what) {
    subject eager{"eager", memory_, work_, budget_, small_layer, {.record = false}, seed};
    op_counts counts{std::move(what), {}, {}, true};
    counts.equal = same_bits(work_, op, eager);
    counts.seen = op.op().counts();
    return counts;
  }

  stream work_;
  call_timer timer_;
  chain_sources sources_;
  bare_launch bare_;
  pool& memory_;
  byte_budget budget_{byte_budget::unlimited};
  std::list<subject> ops_;
  std::vector<forward_ticket> tickets_;  // by op
  timed_calls forwards_;
  timed_calls behind_all_;
  timed_calls backwards_;
  timed_calls voided_;
  std::uint64_t first_forwards_ = 0;
  std::uint64_t last_forwards_ = 0;
  std::uint64_t last_backwards_ = 0;
  std::uint64_t passes_ = 0;
};

}  // namespace

bool pool_costs::is_same_within_spread() const {
  const spread& fewest = rows.front().forward.time.us;
  const spread& most = rows.back().forward.time.us;
  return fewest.p10 <= most.p90 && most.p10 <= fewest.p90;
}

pool_costs measure_pools(pool& memory, device_ref device, const call_counts& counts,
                         const pool_costs_options& options, const progress& tell) {
  std::list<frames_in_a_pool> pools;
  for (std::size_t i = 0; i < options.frames.size(); ++i) {
    tell("frames in a pool", i, options.frames.size());
    pools.emplace_back(memory, device, counts, options.frames[i]);
  }
  const auto passes = static_cast<std::size_t>(std::min(options.rounds, most_passes));
  const auto rounds = static_cast<std::size_t>(options.rounds);
  for (frames_in_a_pool& one : pools) {
    for (int i = 0; i < warm_up_passes; ++i) one.round();
    one.pass();
    one.begin();
  }
  const std::size_t told_every = std::max<std::size_t>(1, rounds / 50);
  for (std::size_t i = 0; i < rounds; ++i) {
    if (i % told_every == 0) tell("forwards in a pool", i, rounds);
    for (frames_in_a_pool& one : pools) one.round();
  }
  for (std::size_t i = 0; i < passes; ++i) {
    tell("passes over a pool", i, passes);
    for (frames_in_a_pool& one : pools) one.pass();
  }
  tell("passes over a pool", passes, passes);
  pool_costs costs;
  for (frames_in_a_pool& one : pools) costs.rows.push_back(one.report());
  return costs;
}

}  // namespace reprise::bench
