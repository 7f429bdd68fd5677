#include "bench/grad/call_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <list>
#include <utility>

#include "bench/grad/bare_launch.hpp"
#include "bench/replay/chain_step.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise::bench {

namespace {

constexpr int warm_up_rounds = 3;

layer_shape shape_of(int inputs) {
  return {.inputs = inputs, .rows = 1, .in = call_in, .out = call_out};
}

std::string count_of(std::int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

struct tools {
  pool& memory;
  const call_timer& timer;
  void* native_stream;
  const chain_sources& sources;
  byte_budget& budget;

  stream_ref stream() const { return timer.stream(); }
  bare_launch bare(std::int64_t nodes) const {
    return {memory, stream(), sources, nodes, native_stream};
  }
};

// One number of inputs: forwards and backwards that are replayed, and their floors.
class replays {
 public:
  replays(const tools& with, int inputs)
      : with_{with},
        shape_{shape_of(inputs)},
        cloned_{"cloned", with.memory, with.stream(), with.budget, shape_, {}, inputs},
        moved_{"moved",     with.memory, with.stream(),
               with.budget, shape_,      {.returned = gradients::moved},
               inputs},
        plain_{with.sources, shape_.forward_nodes(), 0, false},
        cache_{with.stream().device()},
        bare_forward_{with.bare(shape_.forward_nodes())},
        bare_cloned_{with.bare(shape_.backward_nodes(gradients::cloned))},
        bare_moved_{with.bare(shape_.backward_nodes(gradients::moved))} {}

  // Each is one turn of a round; another one goes first each time.
  std::vector<std::function<void()>> turns() {
    return {[this] { bare_forward_.time(with_.timer); },
            [this] { with_.timer.time(steps_, [&] { plain_.run(cache_, with_.stream(), {}); }); },
            [this] { pair(cloned_, forwards_, cloned_backwards_); },
            [this] { bare_cloned_.time(with_.timer); },
            [this] { bare_moved_.time(with_.timer); },
            [this] { pair(moved_, moved_forwards_, moved_backwards_); }};
  }

  // What the first calls took goes.
  void begin() {
    for (timed_calls* one :
         {&steps_, &forwards_, &cloned_backwards_, &moved_forwards_, &moved_backwards_}) {
      *one = {};
    }
    bare_forward_.begin();
    bare_cloned_.begin();
    bare_moved_.begin();
  }

  void report(call_costs& into, int rounds) {
    const std::string all = count_of(shape_.inputs, "input");
    const std::string gradients_of_all = count_of(shape_.inputs, "gradient");
    const std::string floor = fmt::format("bare, {} nodes", shape_.forward_nodes());
    const auto backward_floor = [this](gradients returned) {
      return fmt::format("bare, {} nodes", shape_.backward_nodes(returned));
    };
    const auto add = [&](std::string what, timed_calls& calls, const seam_plan& planned,
                         const std::string& against, const bare_launch& bare,
                         std::optional<double> limit) {
      into.figures.push_back(
          figure_of(std::move(what), std::move(calls), planned, against, bare.us(), limit));
    };
    add(fmt::format("plain replay, {} nodes", shape_.forward_nodes()), steps_, {1, 0, 0}, floor,
        bare_forward_, std::nullopt);
    add("forward replay, " + all, forwards_, {1, 0, 0}, floor, bare_forward_, forward_limit_us);
    add("backward replay, " + gradients_of_all + " cloned", cloned_backwards_, {1, 0, 0},
        backward_floor(gradients::cloned), bare_cloned_, std::nullopt);
    add("backward replay, " + gradients_of_all + " moved", moved_backwards_, {1, 0, 0},
        backward_floor(gradients::moved), bare_moved_, std::nullopt);
    for (subject* one : {&cloned_, &moved_}) {
      subject eager{"eager", with_.memory,      with_.stream(), with_.budget,
                    shape_,  {.record = false}, shape_.inputs};
      op_counts counts{one->op().name() + ", " + all, {}, {}, true};
      counts.equal = same_bits(with_.stream(), *one, eager);
      counts.seen = one->op().counts();
      const auto calls = static_cast<std::uint64_t>(warm_up_rounds + rounds + 1);
      counts.planned.forward_capture = counts.planned.backward_capture = 1;
      counts.planned.forward_replay = counts.planned.backward_replay = calls - 1;
      into.ops.push_back(counts);
    }
  }

 private:
  void pair(subject& op, timed_calls& forwards, timed_calls& backwards) const {
    forward_result made;
    grad_result formed;
    with_.timer.time(forwards, [&] { made = op.forward(); });
    with_.timer.time(backwards, [&] { formed = op.backward(made.ticket); });
  }

  const tools& with_;
  layer_shape shape_;
  subject cloned_;
  subject moved_;
  chain_step plain_;
  replay_cache cache_;
  bare_launch bare_forward_;
  bare_launch bare_cloned_;
  bare_launch bare_moved_;
  timed_calls steps_;
  timed_calls forwards_;
  timed_calls cloned_backwards_;
  timed_calls moved_forwards_;  // as those of the other
  timed_calls moved_backwards_;
};

// What is no plain replay: stale backwards, eager forwards, and calls that need no backward.
class others {
 public:
  explicit others(const tools& with)
      : with_{with},
        shape_{shape_of(1)},
        stale_{"stale", with.memory, with.stream(), with.budget, shape_, {recompute{}}, 1},
        held_{"held", with.memory, with.stream(), with.budget, shape_, {hold{}}, 1},
        inferring_{"inferring", with.memory, with.stream(), with.budget, shape_, {}, 1},
        by_hand_{make_tensor<float>(with.memory, {shape_.rows, shape_.out}, with.stream())},
        bare_{with.bare(shape_.forward_kernels())} {}

  std::vector<std::function<void()>> turns() {
    return {[this] { stale_turn(); }, [this] { held_turn(); },
            [this] { with_.timer.time(kernels_, [&] { launch_by_hand(); }); },
            [this] { infer_turn(); }, [this] { bare_.time(with_.timer); }};
  }

  void begin() {
    for (timed_calls* one : {&owned_, &stale_backwards_, &eager_, &kernels_, &inferences_}) {
      *one = {};
    }
    bare_.begin();
  }

  void report(call_costs& into, int rounds) {
    const auto kernels = static_cast<std::uint64_t>(shape_.forward_kernels());
    const spread owned = spread_of(owned_.us);
    const spread by_hand = spread_of(kernels_.us);
    into.figures.push_back(figure_of("stale backward", std::move(stale_backwards_), {2, 0, 0},
                                     "backward replay", owned));
    into.figures.push_back(figure_of("eager forward, hold", std::move(eager_), {0, 1, kernels},
                                     "its kernels alone", by_hand));
    into.figures.push_back(figure_of("inference replay", std::move(inferences_), {1, 2, 0},
                                     fmt::format("bare, {} node", kernels), bare_.us()));
    pending_ = {};
    count(into, stale_, stale_plan(static_cast<std::uint64_t>(warm_up_rounds + rounds)));
    count(into, held_, held_plan(static_cast<std::uint64_t>(warm_up_rounds + rounds)));
    grad_counts inferred;
    inferred.inference = static_cast<std::uint64_t>(warm_up_rounds + rounds);
    inferred.forward_capture = inferred.backward_capture = 1;
    count(into, inferring_, inferred);
  }

 private:
  // The second forward owns the frame; the backward of the first replays its forward.
  void stale_turn() {
    const forward_ticket first = stale_.forward().ticket;
    const forward_ticket second = stale_.forward().ticket;
    grad_result formed;
    with_.timer.time(owned_, [&] { formed = stale_.backward(second); });
    with_.timer.time(stale_backwards_, [&] { formed = stale_.backward(first); });
  }

  // A backward is owed all the time.
  void held_turn() {
    if (!pending_) pending_ = held_.forward().ticket;
    forward_result made;
    with_.timer.time(eager_, [&] { made = held_.forward(); });
  }

  void infer_turn() {
    forward_result made;
    with_.timer.time(inferences_, [&] { made = inferring_.infer(); });
  }

  void launch_by_hand() {
    launch(with_.stream(), linear<float>, read<float>{held_.input_values(0)},
           read<float>{held_.weight().value.all()}, read<float>{view<const float>{}},
           write<float>{by_hand_.get()}, shape_.out, shape_.in, matrix_precision::full);
  }

  // One forward and backward more, compared.
  void count(call_costs& into, subject& op, const grad_counts& planned) const {
    subject eager{"eager", with_.memory, with_.stream(), with_.budget, shape_, {.record = false},
                  1};
    op_counts counts{op.op().name(), {}, planned, true};
    counts.equal = same_bits(with_.stream(), op, eager);
    counts.seen = op.op().counts();
    into.ops.push_back(counts);
  }

  static grad_counts stale_plan(std::uint64_t turns) {
    grad_counts planned;
    planned.forward_capture = planned.backward_capture = 1;
    planned.forward_replay = 2 * turns;   // and the last one, less the first
    planned.backward_replay = 2 * turns;  // likewise
    planned.stale_replay = turns;
    return planned;
  }
  static grad_counts held_plan(std::uint64_t turns) {
    grad_counts planned;
    planned.forward_capture = planned.backward_capture = 1;
    planned.forward_replay = 1;
    planned.eager_forward[static_cast<std::size_t>(eager_cause::hold)] = turns;
    return planned;
  }

  const tools& with_;
  layer_shape shape_;
  subject stale_;
  subject held_;
  subject inferring_;
  tensor<float> by_hand_;
  bare_launch bare_;
  forward_ticket pending_;
  timed_calls owned_;
  timed_calls stale_backwards_;
  timed_calls eager_;
  timed_calls kernels_;
  timed_calls inferences_;
};

}  // namespace

call_costs measure_calls(pool& memory, const call_timer& timer, void* native_stream, int rounds,
                         const progress& tell) {
  const chain_sources sources{memory, timer.stream()};
  byte_budget budget{byte_budget::unlimited};
  const tools with{memory, timer, native_stream, sources, budget};
  std::list<replays> all;
  for (const int inputs : call_inputs) all.emplace_back(with, inputs);
  others rest{with};
  std::vector<std::function<void()>> turns = rest.turns();
  for (replays& one : all) std::ranges::copy(one.turns(), std::back_inserter(turns));

  const auto total = static_cast<std::size_t>(rounds);
  const std::size_t told_every = std::max<std::size_t>(1, total / 50);
  for (std::size_t i = 0; i < total + warm_up_rounds; ++i) {
    if (i == warm_up_rounds) {
      for (replays& one : all) one.begin();
      rest.begin();
    }
    if (i >= warm_up_rounds && (i - warm_up_rounds) % told_every == 0) {
      tell("calls", i - warm_up_rounds, total);
    }
    for (std::size_t t = 0; t < turns.size(); ++t) turns[(i + t) % turns.size()]();
  }
  tell("calls", total, total);
  call_costs costs;
  for (replays& one : all) one.report(costs, rounds);
  rest.report(costs, rounds);
  timer.stream().synchronize();
  return costs;
}

}  // namespace reprise::bench
