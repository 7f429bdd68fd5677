#include "bench/sdm/size_costs.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "bench/measure/held_bytes.hpp"
#include "bench/sdm/called_op.hpp"
#include "bench/sdm/moved_bytes.hpp"
#include "bench/sdm/parts.hpp"
#include "reprise/grad/precision.hpp"

namespace reprise::bench {

namespace {

// What the rounds of one op took: both ways of calling it, and two steps that are parts of it.
struct round_times {
  pass_times replayed;
  pass_times eager;
  std::vector<double> forward_part;
  std::vector<double> backward_part;
};

struct pass_figures {
  sdm_figure forward;
  sdm_figure backward;
  sdm_figure both;
};

class one_size {
 public:
  one_size(const sdm_tools& with, sdm_data& data, const sdm_chunk& chunk)
      : with_{with}, data_{data}, chunk_{chunk} {
    costs_.name = data.shape.name;
    costs_.sizes = data.shape.sizes(chunk.tokens);
  }

  void measure_op() {
    const moved_bytes floor = moved_by_op(costs_.sizes, sizeof(bf16));
    const moved_bytes floor_of_banks = moved_by_bank_passes(costs_.sizes, sizeof(bf16));
    const sparse_delta_memory<bf16> op{{.sizes = costs_.sizes}, data_.bank()};
    op_to_call what{name_of("op"),
                    erase(std::make_shared<const sparse_delta_memory<bf16>>(op)),
                    data_.call.operands_for(op),
                    gradient_of(op.readings, view<const float>{data_.call.dy.all()}),
                    {&data_.bank()}};
    round_times times = measure<bank_passes>(what, costs_.sizes, data_.bank());

    const pass_figures replayed = figures_of("op", "", times.replayed, floor);
    add(replayed);
    add(figures_of("op", ", eager", times.eager, floor));
    const sdm_figure initial =
        figure("initial bank", std::move(times.forward_part), floor_of_banks.forward);
    const sdm_figure cotangent = figure("cotangent and gradient of the bank",
                                        std::move(times.backward_part), floor_of_banks.backward);
    costs_.figures.push_back(initial);
    costs_.figures.push_back(cotangent);
    add({without(replayed.forward, initial.us), without(replayed.backward, cotangent.us),
         without(replayed.both, initial.us + cotangent.us)});
  }

  void measure_layer() {
    const precision_scope tensor_cores{{.products = matrix_precision::tf32}};
    const sdm_layer<bf16> layer{data_.weights, sdm_data::layer_name,
                                data_.shape.layer(chunk_.tokens)};
    const dims rows{costs_.sizes.streams * costs_.sizes.tokens, costs_.sizes.width};
    std::vector<parameter*> trained;
    for (std::size_t i = 0; i < data_.weights.size(); ++i) trained.push_back(&data_.weights[i]);
    op_to_call what{name_of("layer"),
                    erase(std::make_shared<const sdm_layer<bf16>>(layer)),
                    {operand{layer.x(data_.call.v.all(), rows)}},
                    gradient_of(layer.y, view<const float>{data_.call.dy.all()}),
                    std::move(trained)};
    round_times times = measure<addressing>(what, costs_.sizes, data_.shape.side);

    pass_figures replayed = figures_of("layer", "", times.replayed, std::nullopt);
    replayed.both.limit_us = chunk_.layer_limit_us;
    add(replayed);
    add(figures_of("layer", ", eager", times.eager, std::nullopt));
    costs_.figures.push_back(figure("addressing", std::move(times.forward_part), std::nullopt));
    costs_.figures.push_back(
        figure("addressing, backward", std::move(times.backward_part), std::nullopt));
  }

  size_costs report() { return std::move(costs_); }

 private:
  std::string name_of(const char* what) const {
    return fmt::format("{}, chunk {}, {}", costs_.name, chunk_.tokens, what);
  }

  // The memory is looked at before anything else is made that takes some.
  template <class Parts, class... Given>
  round_times measure(const op_to_call& what, Given&&... given) {
    with_.tell(what.what, 0, static_cast<std::size_t>(with_.rounds));
    with_.stream.device().trim();
    const held_bytes before = held_now(with_.stream);
    called_op replayed{with_.stream, what, with_.budget, true};
    replayed.run();
    replayed.run();
    const held_bytes after = held_now(with_.stream);
    costs_.held.push_back({what.what, replayed.op().bytes(), grown(before.own, after.own),
                           grown(before.device, after.device)});

    called_op eager{with_.stream, what, with_.budget, false};
    const bool equal = eager.run_and_look() == replayed.run_and_look();
    Parts parts{with_.memory, with_.stream, std::forward<Given>(given)...};
    parts.forward.check();
    parts.backward.check();

    round_times times;
    in_rounds(with_, what.what,
              {[&] { replayed.time(times.replayed); }, [&] { eager.time(times.eager); },
               [&] { times.forward_part.push_back(parts.forward.time()); },
               [&] { times.backward_part.push_back(parts.backward.time()); }},
              [&] { times = {}; });
    for (const called_op* const one : {&replayed, &eager}) {
      costs_.ops.push_back(one->counts());
      costs_.ops.back().equal = equal;
    }
    for (const repeated_step* const one : {&parts.forward, &parts.backward}) {
      costs_.steps.push_back(one->counts());
      costs_.steps.back().what = what.what + ", " + costs_.steps.back().what;
    }
    return times;
  }

  sdm_figure figure(std::string what, std::vector<double> us,
                    std::optional<std::int64_t> floor_bytes) const {
    sdm_figure made;
    made.what = std::move(what);
    made.measured = spread_of(std::move(us));
    made.us = made.measured.median;
    made.tokens = costs_.sizes.streams * costs_.sizes.tokens;
    made.floor_bytes = floor_bytes;
    made.bytes_per_us = with_.bytes_per_us;
    made.is_judged = with_.gpu;
    return made;
  }

  pass_figures figures_of(const std::string& op, const char* how, pass_times& times,
                          const std::optional<moved_bytes>& floor) const {
    const auto bytes = [&](std::int64_t of) { return floor ? std::optional{of} : std::nullopt; };
    const moved_bytes moved = floor.value_or(moved_bytes{});
    return {figure(op + " forward" + how, std::move(times.forward), bytes(moved.forward)),
            figure(op + " backward" + how, std::move(times.backward), bytes(moved.backward)),
            figure(op + " forward and backward" + how, std::move(times.both), bytes(moved.both()))};
  }

  // What is left of a figure when its whole-bank passes, measured apart, are taken away.
  static sdm_figure without(const sdm_figure& of, double passes_us) {
    sdm_figure made = of;
    made.what += " without whole-bank passes";
    made.measured = {};
    made.us -= passes_us;
    return made;
  }

  void add(const pass_figures& three) {
    for (const sdm_figure* const one : {&three.forward, &three.backward, &three.both}) {
      costs_.figures.push_back(*one);
    }
  }

  const sdm_tools& with_;
  sdm_data& data_;
  sdm_chunk chunk_;
  size_costs costs_;
};

}  // namespace

sdm_data::sdm_data(pool& memory, stream_ref stream, const sdm_shape& of)
    : shape{of},
      weights{memory, stream, sdm_layer_parameters(layer_name, of.layer(1)), 1},
      call{memory, stream, of.sizes(1), 1} {}

size_costs measure_size(const sdm_tools& with, sdm_data& data, const sdm_chunk& chunk) {
  one_size size{with, data, chunk};
  size.measure_op();
  size.measure_layer();
  with.stream.synchronize();
  return size.report();
}

}  // namespace reprise::bench
