#include "workloads/denoise/denoiser.hpp"

#include <utility>

#include "reprise/kernel/launch.hpp"
#include "reprise/ops/bias_add.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/flow.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/ops/timestep_embedding.hpp"

namespace reprise::denoise {

namespace {

read<float> weight(const parameter& p) {
  return read<float>{elements_of<float>(p.value)};
}

// y = x W^T + bias
void linear(step_scope& run, view<float> x, const layer_weights& w, view<float> y) {
  const dims& shape = w.matrix.value.shape;
  launch(run, matmul<float, float>, read(x), weight(w.matrix), write(y), shape[0], shape[1]);
  launch(run, bias_add, read(y), weight(w.bias), write(y));
}

// y += x W^T + bias
void linear_onto(step_scope& run, view<float> x, const layer_weights& w, view<float> y) {
  const dims& shape = w.matrix.value.shape;
  launch(run, matmul_add<float, float>, read(x), weight(w.matrix), inout(y), shape[0], shape[1]);
  launch(run, bias_add, read(y), weight(w.bias), write(y));
}

// Scratch of one run; the branches run one after the other in the same memory.
struct activations {
  activations(step_scope& run, const denoiser_config& c, std::int64_t images)
      : no_class{run.scratch<std::int32_t>({images})},
        features{run.scratch<float>({images, c.time_width})},
        time{run.scratch<float>({images, c.condition_width})},
        condition{run.scratch<float>({images, c.condition_width})},
        entered{run.scratch<float>({images, c.width})},
        residual{run.scratch<float>({images, c.width})},
        normed{run.scratch<float>({images, c.width})},
        inner{run.scratch<float>({images, c.inner_width})},
        with_class{run.scratch<float>({images, c.pixels()})},
        without{run.scratch<float>({images, c.pixels()})} {}

  view<std::int32_t> no_class;
  view<float> features, time, condition, entered, residual, normed, inner, with_class, without;
};

// What both branches begin with.
void enter(step_scope& run, const denoiser& model, read<float> x, read<float> times,
           const activations& a) {
  const denoiser_config& c = model.config;
  const denoiser_weights& w = model.weights;
  launch(run, timestep_embedding, times, write(a.features), c.time_width);
  linear(run, a.features, w.time_in, a.time);
  launch(run, gelu, read(a.time), write(a.time));
  const dims& shape = w.input.matrix.value.shape;
  launch(run, matmul<float, float>, x, weight(w.input.matrix), write(a.entered), shape[0],
         shape[1]);
  launch(run, bias_add, read(a.entered), weight(w.input.bias), write(a.entered));
}

void through_block(step_scope& run, const denoiser_config& c, const block_weights& w,
                   const activations& a) {
  launch(run, layer_norm, read(a.residual), weight(w.norm.gain), weight(w.norm.bias),
         write(a.normed), c.width, c.norm_epsilon);
  linear(run, a.normed, w.up, a.inner);
  launch(run, matmul_add<float, float>, read(a.condition), weight(w.condition), inout(a.inner),
         c.inner_width, c.condition_width);
  launch(run, gelu, read(a.inner), write(a.inner));
  linear_onto(run, a.inner, w.down, a.residual);
}

// One branch: the prediction for these classes.
void predict(step_scope& run, const denoiser& model, read<std::int32_t> classes,
             const activations& a, view<float> prediction) {
  const denoiser_config& c = model.config;
  const denoiser_weights& w = model.weights;
  launch(run, embedding<float, float>, classes, weight(w.classes), write(a.condition),
         c.condition_width);
  linear_onto(run, a.time, w.time_out, a.condition);
  launch(run, gelu, read(a.condition), write(a.condition));
  copy(run, read(a.entered), write(a.residual));
  for (const block_weights& block : w.blocks) through_block(run, c, block, a);
  launch(run, layer_norm, read(a.residual), weight(w.norm.gain), weight(w.norm.bias),
         write(a.normed), c.width, c.norm_epsilon);
  linear(run, a.normed, w.output, prediction);
}

}  // namespace

evaluation evaluation_of(const denoiser& model) {
  const std::int64_t pixels = model.config.pixels();
  signature declared{"evaluate"};
  const auto x = declared.in<float>("x", {any, pixels});
  const auto classes = declared.in<std::int32_t>("classes", {any});
  const auto times = declared.in<float>("times", {any});
  const auto guidance = declared.in<float>("guidance", {1});
  const auto factors = declared.in<float>("factors", {2});
  const auto drift = declared.out<float>("drift");
  model.weights.declare(declared);

  const auto body = [=, &model](step_scope& run) {
    const activations a{run, model.config, run.shape(x)[0]};
    const view<float> out = run.make(drift, run.shape(x));
    enter(run, model, read(run[x]), read(run[times]), a);
    predict(run, model, read(run[classes]), a, a.with_class);
    run.mark({"with class", 0}, as_tensor(a.with_class, run.shape(x)));
    fill(run, write(a.no_class), model.config.null_class());
    predict(run, model, read(a.no_class), a, a.without);
    run.mark({"without class", 0}, as_tensor(a.without, run.shape(x)));
    launch(run, guide, read(a.with_class), read(a.without), read(run[guidance]),
           write(a.with_class));
    launch(run, flow_drift, read(a.with_class), read(run[x]), read(run[factors]), write(out));
  };
  return {x, classes, times, guidance, factors, drift, step{std::move(declared), body}};
}

}  // namespace reprise::denoise
