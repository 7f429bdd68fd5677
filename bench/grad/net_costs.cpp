#include "bench/grad/net_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <utility>

#include "bench/grad/bare_launch.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/optimizers.hpp"
#include "reprise/ops/squared_error.hpp"

namespace reprise::bench {

namespace {

constexpr layer_shape wide{.inputs = 1, .rows = 16, .in = 256, .out = 256, .activates = true};
constexpr std::array<float, 3> descent{1e-3F, 0, 0};  // rate, momentum, decay
constexpr int warm_up_steps = 2;

// Layers of one width under a mean squared error, descended by sgd.
class net {
 public:
  net(std::string name, pool& memory, stream_ref stream, const graphed_options& options,
      int forwards)
      : name_{std::move(name)},
        stream_{stream},
        forwards_{forwards},
        words_{memory, descent.size(), stream},
        one_{memory, 1, stream},
        target_{make_tensor<float>(memory, {wide.rows, wide.out}, stream)},
        dy_{make_tensor<float>(memory, {wide.rows, wide.out}, stream)} {
    copy(stream, read<float>{view<const float>{descent.data(), descent.size()}}, write{words_});
    fill(stream, write{one_}, 1.0F);
    fill_numbers(stream, target_.get(), 1);
    for (int i = 0; i < forwards; ++i) {
      batches_.push_back(make_tensor<float>(memory, {wide.rows, wide.in}, stream));
      fill_numbers(stream, batches_.back().get(), 2 + i);
    }
    for (int i = 0; i < net_layers; ++i) {
      trained_weight& weight = weights_.emplace_back(memory, stream, wide, 10 + i);
      ops_.emplace_back(layer{fmt::format("layer {}", i), wide, weight.at}, budget_, options);
    }
  }

  void step() {
    std::vector<std::vector<forward_ticket>> owed;
    std::vector<tensor<float>> made;
    for (const tensor<float>& batch : batches_) {
      made.push_back(batch);
      std::vector<forward_ticket>& tickets = owed.emplace_back();
      for (graphed_op<layer>& one : ops_) {
        const forward_result done =
            one.forward(stream_, {operand{one.op().x.front(), made.back()}});
        made.back() = done[one.op().y];
        tickets.push_back(done.ticket);
      }
    }
    for (std::size_t i = 0; i < batches_.size(); ++i) backward(made[i], owed[i]);
    for (trained_weight& one : weights_) {
      launch(stream_, sgd, read<float>{words_.all()}, read<float>{one.gradient.all()},
             inout<float>{view<float>{}}, inout<float>{one.value.all()});
      one.at.version.bump();
      one.at.has_grad = false;
    }
  }

  void time(const call_timer& timer) {
    double began = 0;
    timer.time(calls_, [&] {
      began = now_us();
      step();
    });
    stream_.synchronize();
    whole_us_.push_back(now_us() - began);
  }

  void begin() {
    calls_ = {};
    whole_us_.clear();
  }

  // The weights, one behind another.
  std::vector<float> weights() {
    std::vector<float> all;
    for (trained_weight& one : weights_) {
      const std::vector<float> values = on_host(stream_, one.value.all());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  net_row report(const seam_plan& planned, std::string floor, const spread& floor_us,
                 std::uint64_t steps) {
    net_row row;
    row.forwards = forwards_;
    row.host = figure_of(name_, std::move(calls_), planned, std::move(floor), floor_us);
    row.step_us = spread_of(std::move(whole_us_));
    row.layers.what = name_;
    const bool records = ops_.front().options().record;
    const auto per_step = static_cast<std::uint64_t>(forwards_);
    for (graphed_op<layer>& one : ops_) {
      const grad_counts counts = one.counts();
      grad_counts& seen = row.layers.seen;
      seen.forward_capture += counts.forward_capture;
      seen.forward_replay += counts.forward_replay;
      seen.backward_capture += counts.backward_capture;
      seen.backward_replay += counts.backward_replay;
      seen.stale_replay += counts.stale_replay;
      for (std::size_t i = 0; i < eager_causes; ++i) {
        seen.eager_forward[i] += counts.eager_forward[i];
        seen.eager_backward[i] += counts.eager_backward[i];
      }
      grad_counts& plan = row.layers.planned;
      const auto off = static_cast<std::size_t>(eager_cause::suspended);
      (records ? plan.forward_replay : plan.eager_forward[off]) += per_step * steps;
      (records ? plan.backward_replay : plan.eager_backward[off]) += per_step * steps;
      if (!records) continue;
      // Each frame is captured in the first step.
      plan.forward_capture += per_step;
      plan.forward_replay -= per_step;
      plan.backward_capture += per_step;
      plan.backward_replay -= per_step;
    }
    return row;
  }

 private:
  void backward(const tensor<float>& made, const std::vector<forward_ticket>& tickets) {
    launch(stream_, squared_error_grad, read<float>{made.get()}, read<float>{target_.get()},
           read<float>{one_.all()}, write<float>{dy_.get()});
    tensor<float> dy = dy_;
    std::size_t i = tickets.size();
    for (auto one = ops_.rbegin(); one != ops_.rend(); ++one) {
      const bool is_first = --i == 0;
      const grad_result formed = one->backward(stream_, tickets[i], {gradient_of(one->op().y, dy)},
                                               is_first ? wanted::parameters_only() : wanted{});
      if (!is_first) dy = formed[one->op().x.front()];
    }
  }

  std::string name_;
  stream_ref stream_;
  int forwards_;
  byte_budget budget_{byte_budget::unlimited};
  buffer<float> words_;
  buffer<float> one_;
  tensor<float> target_;
  tensor<float> dy_;
  std::vector<tensor<float>> batches_;
  std::list<trained_weight> weights_;
  std::list<graphed_op<layer>> ops_;
  timed_calls calls_;
  std::vector<double> whole_us_;
};

// The launches of a step's recordings, one behind another.
class bare_step {
 public:
  bare_step(pool& memory, stream_ref stream, const chain_sources& sources, void* native_stream)
      : forward_{memory, stream, sources, wide.forward_nodes(), native_stream},
        backward_{memory, stream, sources, wide.backward_nodes(gradients::cloned), native_stream} {}

  void time(const call_timer& timer, int forwards) {
    if (!forward_.is_here()) return;
    timer.time(forwards == 1 ? alone_ : together_, [&] {
      for (int i = 0; i < forwards * net_layers; ++i) forward_.launch();
      for (int i = 0; i < forwards * net_layers; ++i) backward_.launch();
    });
  }
  void begin() { alone_ = together_ = {}; }
  spread us(int forwards) const { return spread_of((forwards == 1 ? alone_ : together_).us); }

 private:
  bare_launch forward_;
  bare_launch backward_;
  timed_calls alone_;
  timed_calls together_;
};

seam_plan plan_of(const graphed_options& options, int forwards) {
  constexpr auto layers = static_cast<std::uint64_t>(net_layers);
  const auto n = static_cast<std::uint64_t>(forwards);
  const std::uint64_t beside = n + layers;  // kernels: of the loss, and updates
  if (options.record) return {2 * n * layers, 0, beside};
  const std::uint64_t made = n * layers;  // outputs
  const std::uint64_t formed = n * (layers - 1);
  const auto kernels = static_cast<std::uint64_t>(2 * wide.forward_kernels() +
                                                  wide.backward_kernels() + 1);  // and its delivery
  return {0, made + formed, beside + n * (layers * kernels - 1)};
}

}  // namespace

net_costs measure_nets(pool& memory, const call_timer& timer, void* native_stream, int steps,
                       const progress& tell) {
  const stream_ref stream = timer.stream();
  const chain_sources sources{memory, stream};
  bare_step floor{memory, stream, sources, native_stream};
  struct mode {
    std::string name;
    graphed_options options;
    int forwards;
  };
  const slots enough = slots_for_accumulation(accumulated);
  const std::string together = fmt::format(", {} accumulated", accumulated);
  const std::array modes{mode{"eager", {.record = false}, 1},
                         mode{"replayed, hold", {.conflict = hold{}}, 1},
                         mode{"eager" + together, {.record = false}, accumulated},
                         mode{"replayed, " + text_of(on_conflict{enough}) + together,
                              {.conflict = enough},
                              accumulated}};
  std::list<net> nets;
  for (const mode& one : modes) {
    nets.emplace_back(one.name, memory, stream, one.options, one.forwards);
  }
  const auto total = static_cast<std::size_t>(steps);
  const std::size_t told_every = std::max<std::size_t>(1, total / 50);
  for (std::size_t i = 0; i < total + warm_up_steps; ++i) {
    if (i == warm_up_steps) {
      for (net& one : nets) one.begin();
      floor.begin();
    }
    if (i >= warm_up_steps && (i - warm_up_steps) % told_every == 0) {
      tell("training steps", i - warm_up_steps, total);
    }
    for (net& one : nets) one.time(timer);
    floor.time(timer, 1);
    floor.time(timer, accumulated);
  }
  tell("training steps", total, total);

  net_costs costs;
  std::vector<float> of_eager;
  auto named = modes.begin();
  for (net& one : nets) {
    const int launches = 2 * net_layers * named->forwards;
    net_row row = one.report(plan_of(named->options, named->forwards),
                             fmt::format("{} bare launches", launches), floor.us(named->forwards),
                             static_cast<std::uint64_t>(steps + warm_up_steps));
    const std::vector<float> weights = one.weights();
    if (!named->options.record) of_eager = weights;
    row.layers.equal = std::memcmp(weights.data(), of_eager.data(), weights.size() * 4) == 0;
    costs.rows.push_back(std::move(row));
    ++named;
  }
  stream.synchronize();
  return costs;
}

}  // namespace reprise::bench
