#include "bench/sdm/decode_costs.hpp"

#include <utility>

#include "bench/sdm/repeated_step.hpp"
#include "reprise/grad/precision.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/step.hpp"

namespace reprise::bench {

namespace {

signature going_on_from(const char* name, view<bf16> bank, const char* made, view<float> to) {
  signature declared{name};
  declared.state("banks", as_tensor(bank));
  declared.overwrites(made, as_tensor(to));
  return declared;
}

}  // namespace

decode_costs measure_decode(const sdm_tools& with, sdm_data& data) {
  const precision_scope tensor_cores{{.products = matrix_precision::tf32}};
  decode_costs costs;
  costs.name = data.shape.name;
  costs.sizes = data.shape.one_token();
  const sdm_sizes& sizes = costs.sizes;
  const auto width = static_cast<std::size_t>(sizes.width);
  const stream_ref stream = with.stream;
  with.tell("decode", 0, static_cast<std::size_t>(with.rounds));

  const sdm_call token{with.memory, stream, sizes, 3};
  const buffer<bf16> bank{with.memory, static_cast<std::size_t>(sizes.rows() * sizes.width),
                          stream};
  const buffer<bf16> bank_of_layer{with.memory, bank.size(), stream};
  const buffer<float> readings{with.memory, width, stream};
  const buffer<float> y{with.memory, width, stream};
  const view<const float> initial{elements_of<float>(data.bank().value)};

  repeated_step op{stream, going_on_from("sdm_step", bank.all(), "readings", readings.all()),
                   [&](step_scope& run) {
                     launch(run, sdm_step<bf16>, inout<bf16>{bank.all()},
                            read<std::int32_t>{token.k_idx.all()}, read<float>{token.k_val.all()},
                            read<float>{token.v.all()}, read<float>{token.beta.all()},
                            read<float>{token.g.all()}, read<std::int32_t>{token.q_idx.all()},
                            read<float>{token.q_val.all()}, write<float>{readings.all()}, sizes);
                   },
                   [&] {
                     launch(stream, sdm_expand<bf16>, read<float>{initial}, write<bf16>{bank.all()},
                            sizes.streams);
                   }};

  sdm_layer_options of_one = data.shape.layer(1);
  of_one.streams = 1;
  const sdm_layer<bf16> layer{data.weights, sdm_data::layer_name, of_one};
  signature declared = going_on_from("layer step", bank_of_layer.all(), "y", y.all());
  for (const declared_use& one : layer.describe().uses()) declared.uses(one.name, *one.weight);
  repeated_step whole{
      stream, std::move(declared),
      [&](step_scope& run) { layer.step(run, token.v.all(), bank_of_layer.all(), y.all()); },
      [&] { layer.begin(stream, bank_of_layer.all()); }};

  op.check();
  whole.check();
  std::vector<double> of_op, of_layer;
  in_rounds(with, "decode",
            {[&] { of_op.push_back(op.time(decode_replays_in_a_row)); },
             [&] { of_layer.push_back(whole.time(decode_replays_in_a_row)); }},
            [&] {
              of_op.clear();
              of_layer.clear();
            });
  const auto add = [&](const repeated_step& step, std::vector<double>& us,
                       std::optional<double> limit_us) {
    costs.steps.push_back(step.counts());
    sdm_figure& made = costs.figures.emplace_back();
    made.what = costs.steps.back().what;
    made.measured = spread_of(std::move(us));
    made.us = made.measured.median;
    made.limit_us = limit_us;
    made.is_judged = with.gpu;
  };
  add(op, of_op, data.shape.step_limit_us);
  add(whole, of_layer, std::nullopt);
  return costs;
}

}  // namespace reprise::bench
