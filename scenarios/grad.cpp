// Training with graphed ops: schedules of calls by the seed, a loop whose optimizer has a stream of
// its own, and threads.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/device/host_thread.hpp"
#include "reprise/platform/platform.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/grad_expected.hpp"
#include "scenarios/grad_kernels.hpp"
#include "scenarios/grad_ops.hpp"
#include "scenarios/grad_played.hpp"
#include "scenarios/grad_player.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class grad_slip {
  none,
  gradient_read_elsewhere,
  weight_moved_elsewhere,
  operand_freed_early,
  gradient_never_dropped,
  one_weight_for_both,
};

// Of "sim:seed=7" 7; other devices have none.
std::optional<std::uint64_t> seed_of(device_ref dev) {
  constexpr std::string_view before = "sim:seed=";
  const std::string_view name = dev.name();
  if (!name.starts_with(before)) return std::nullopt;
  std::uint64_t seed = 0;
  std::from_chars(name.data() + before.size(), name.data() + name.size(), seed);
  return seed;
}

// What went wrong, of the shortest schedule that goes wrong on the CPU too.
std::string shortest_failure(const grad_schedule& of, const std::string& said) {
  const device plain = open_device("cpu", {.threads = 1}, scenario_kernels());
  std::string last;
  const auto fails = [&](const grad_schedule& tried) {
    try {
      play(plain, tried);
    } catch (const error& failed) {
      last = failed.what();
      return true;
    }
    return false;
  };
  if (!fails(of)) return said;
  shortened(of, fails, 500);
  return last;
}

void played_schedules(device_ref dev) {
  const std::optional<std::uint64_t> seed = seed_of(dev);
  const std::uint64_t first = seed.value_or(1);
  for (std::uint64_t i = first; i <= (seed ? first : 6); ++i) {
    const grad_schedule of = random_schedule(i);
    try {
      play(dev, of);
    } catch (const wrong_result& failed) {
      throw wrong_result{shortest_failure(of, failed.what())};
    }
  }
}

// A linear op under hold, two micro-batches a step, so the second one runs eagerly; its optimizer
// runs on another stream.
template <grad_slip made>
void training_on_two_streams(device_ref dev) {
  desk at{dev};
  const stream side{dev};
  byte_budget budget{byte_budget::unlimited};
  philox_counter counter{1};
  const grad_schedule values{.seed = 5, .ops = {}, .calls = {}};
  floats weight = first_weight(values, 0);
  const auto op = make_op({at.s, at.memory, budget, counter}, {}, 0, weight);
  const int rows = 3;
  for (int step = 0; step != 4; ++step) {
    floats sum;
    std::vector<buffer<float>> x;
    std::vector<forward_ticket> tickets;
    for (int micro = 0; micro != 2; ++micro) {
      const floats in = input_values(values, step, micro, 0, rows);
      x.emplace_back(at.memory, in.size(), at.s);
      upload(at.s, in, x.back());
      tickets.push_back(op->op->forward(at.s, {op->inputs[0](x.back().all())}).ticket);
    }
    if (made == grad_slip::operand_freed_early) x.clear();
    for (int micro = 0; micro != 2; ++micro) {
      const floats in = input_values(values, step, micro, 0, rows);
      const floats back = cotangent_values(values, step, micro, 0, rows);
      const buffer<float> dy{at.memory, back.size(), at.s};
      upload(at.s, back, dy);
      op->op->backward(at.s, tickets[static_cast<std::size_t>(micro)],
                       {gradient_of<float>(op->outputs[0], dy.all())}, wanted::parameters_only());
      const floats one = on_host::scaled_dw(back, in, weight.size(), 1.0F);
      if (sum.empty()) sum.resize(one.size(), -0.0F);
      for (std::size_t i = 0; i < one.size(); ++i) sum[i] = sum[i] + one[i];
    }
    if (made != grad_slip::gradient_read_elsewhere) order(at.s, side);
    {
      const version_change moves{op->weight.version};
      launch(side, descend, read(op->gradient.all()), 0.5F, inout(op->value.all()));
    }
    if (made != grad_slip::gradient_never_dropped) op->weight.has_grad = false;
    if (made != grad_slip::weight_moved_elsewhere) order(side, at.s);
    on_host::descend(weight, sum, 0.5F);
  }
  order(side, at.s);
  kept_results results{at.memory};
  results.keep(at.s, 0, "the weight", op->value.all(), weight, {});
  const auto differs = results.first_difference(at.s);
  if (differs) require(false, differs->text);
  const grad_counts counts = op->op->counts();
  require(counts.forward_capture == 1 && counts.forward_replay == 3 &&
              counts.eager_forwards() == 4 && counts.backward_capture == 1 &&
              counts.backward_replay == 3 && counts.eager_backwards() == 4,
          "calls ran in another way than planned");
}

// What one thread does with one op: forwards and backwards by turns, all on one stream.
struct worker {
  worker(const world& in, op_kind kind, int index)
      : values{.seed = 11, .ops = {{.kind = kind, .options = {}}}, .calls = {}},
        weight{first_weight(values, index)},
        op{make_op(in, values.ops[0], index, weight)} {
    for (int i = 0; i != calls; ++i) {
      x.push_back(made(in, input_values(values, i, index, 0, rows)));
      dy.push_back(made(in, cotangent_values(values, i, index, 0, rows)));
    }
  }

  static tensor<float> made(const world& in, const floats& elements) {
    const tensor<float> there = make_tensor<float>(in.memory, {rows, row}, in.s);
    upload(in.s, elements, there.get());
    return there;
  }

  void work(stream_ref s) {
    for (std::size_t i = 0; i != calls; ++i) {
      const forward_result forward = op->op->forward(s, {{op->inputs[0], x[i]}});
      y.push_back(forward[op->outputs[0]]);
      const grad_result back =
          op->op->backward(s, forward.ticket, {gradient_of(op->outputs[0], dy[i])});
      dx.push_back(back[op->inputs[0]]);
    }
  }

  static constexpr int calls = 4;
  static constexpr int rows = 3;
  grad_schedule values;
  floats weight;
  std::unique_ptr<played_op> op;
  std::vector<tensor<float>> x;
  std::vector<tensor<float>> dy;
  std::vector<tensor<float>> y;
  std::vector<tensor<float>> dx;
};

// Two threads on one stream, so on one pool: calls take turns, and what one replays the other's
// backwards notice.
void threads_on_one_pool(device_ref dev) {
  desk at{dev};
  byte_budget budget{byte_budget::unlimited};
  philox_counter counter{1};
  const world in{at.s, at.memory, budget, counter};
  worker first{in, op_kind::scaled, 0};
  worker second{in, op_kind::rewinding, 1};
  {
    host_thread beside{dev, [&] { second.work(at.s); }};
    first.work(at.s);
    beside.join();
  }
  kept_results results{at.memory};
  floats sum(row, -0.0F);
  for (int i = 0; i != worker::calls; ++i) {
    const auto n = static_cast<std::size_t>(i);
    const floats x0 = input_values(first.values, i, 0, 0, worker::rows);
    const floats dy0 = cotangent_values(first.values, i, 0, 0, worker::rows);
    const floats x1 = input_values(second.values, i, 1, 0, worker::rows);
    const floats dy1 = cotangent_values(second.values, i, 1, 0, worker::rows);
    const auto keep = [&](std::string_view what, const tensor<float>& got, const floats& is) {
      results.keep(at.s, n, fmt::format("{} {}", what, i), got, is, {});
    };
    keep("the first thread's output", first.y[n], on_host::scaled(x0, first.weight, 1.0F));
    keep("the first thread's gradient", first.dx[n], on_host::scaled_dx(dy0, first.weight, 1.0F));
    keep("the second thread's output", second.y[n], on_host::rewinding(x1));
    keep("the second thread's gradient", second.dx[n], on_host::rewinding_dx(dy1, x1));
    const floats one = on_host::scaled_dw(dy0, x0, row, 1.0F);
    for (std::size_t j = 0; j < one.size(); ++j) sum[j] = sum[j] + one[j];
  }
  results.keep(at.s, 0, "the gradient of the weight", first.op->gradient.all(), sum, {});
  const auto differs = results.first_difference(at.s);
  if (differs) require(false, differs->text);
  for (const worker* one : {&first, &second}) {
    const grad_counts counts = one->op->op->counts();
    require(counts.forward_capture == 1 && counts.forward_replay == worker::calls - 1 &&
                counts.backward_capture == 1 && counts.backward_replay == worker::calls - 1,
            "calls ran in another way than planned");
  }
}

// A schedule on each of two threads, with streams of their own.
void threads_on_two_pools(device_ref dev) {
  const std::uint64_t seed = seed_of(dev).value_or(1);
  std::array<grad_schedule, 2> schedules{random_schedule(2 * seed), random_schedule(2 * seed + 1)};
  for (grad_schedule& of : schedules) {
    // A reset is for all ops of the process, between steps.
    std::erase_if(of.calls, [](const scheduled& call) { return call.what == act::reset; });
  }
  host_thread beside{dev, [&] { play(dev, schedules[0]); }};
  play(dev, schedules[1]);
  beside.join();
}

template <grad_slip made>
void grad_threads(device_ref dev) {
  if (made == grad_slip::none) {
    threads_on_one_pool(dev);
    threads_on_two_pools(dev);
    return;
  }
  // Both add to one gradient, each on a stream of its own.
  desk at{dev};
  const stream other{dev};
  byte_budget budget{byte_budget::unlimited};
  philox_counter counter{1};
  const world in{at.s, at.memory, budget, counter};
  worker first{in, op_kind::scaled, 0};
  worker second{in, op_kind::scaled, 0};
  const graphed_op<scaled> shared{scaled{"shared", first.op->weight}, budget};
  second.op->inputs = {shared.op().x};
  second.op->outputs = {shared.op().y};
  second.op->op = std::make_shared<graphed>(shared);
  order(at.s, other);
  host_thread beside{dev, [&] { second.work(other); }};
  first.work(at.s);
  beside.join();
  order(other, at.s);
}

}  // namespace

std::vector<scenario> grad_scenarios() {
  return {
      {"grad",
       "Graphed ops, called in any order, give what a plain run gives, as often as a model says.",
       played_schedules,
       {"graphed op: captured a forward", "graphed op: captured a backward",
        "graphed op: replayed a stale forward", "frame memory: grows although there is room"},
       {}},
      {"grad_on_two_streams",
       "A weight is trained on one stream and moved on another, which wait for each other.",
       training_on_two_streams<grad_slip::none>,
       {},
       {{"gradient_read_elsewhere",
         "The optimizer reads a gradient on a stream that does not wait for the backward.",
         {"race", "unwritten read"},
         training_on_two_streams<grad_slip::gradient_read_elsewhere>},
        {"weight_moved_elsewhere",
         "The next forward does not wait for the optimizer's stream.",
         {"race"},
         training_on_two_streams<grad_slip::weight_moved_elsewhere>},
        {"operand_freed_early",
         "The input of an eager forward is freed before its backward.",
         {"use after free"},
         training_on_two_streams<grad_slip::operand_freed_early>},
        {"gradient_never_dropped",
         "The gradient is not dropped when the weight has moved, so the next one is added to it.",
         {"thrown"},
         training_on_two_streams<grad_slip::gradient_never_dropped>}}},
      {"grad_threads",
       "Threads on one pool take turns, threads on two pools run side by side.",
       grad_threads<grad_slip::none>,
       {},
       {{"one_weight_for_both",
         "Two threads add to the gradient of one weight, each on a stream of its own.",
         {"race"},
         grad_threads<grad_slip::one_weight_for_both>}}},
  };
}

}  // namespace reprise::scenarios
