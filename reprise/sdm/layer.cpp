#include "reprise/sdm/layer.hpp"

#include <fmt/format.h>

#include <bit>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/add.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_grad.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/passes.hpp"
#include "reprise/sdm/product_keys.hpp"
#include "reprise/sdm/projection.hpp"
#include "reprise/sdm/step.hpp"

namespace reprise {

namespace {

constexpr float norm_eps = 1e-5F;

template <class T>
read<T> to_read(view<T> from) {
  return read<T>{from};
}

// Throws usage_error, naming what is too small or too large.
sdm_sizes sizes_in(const sdm_layer_options& o) {
  const auto need = [](const char* what, std::int64_t is, std::int64_t most) {
    if (is >= 1 && is <= most) return;
    throw usage_error{fmt::format("sdm_layer: {} is {}; give 1 to {}", what, is, most)};
  };
  need("side", o.side, sdm::most_half_keys);
  need("writes", o.writes, sdm::most_chosen_slots);
  need("reads", o.reads, sdm::most_chosen_slots);
  need("key_width", o.key_width, ops::widest_layer);
  const sdm_sizes sizes{.streams = o.streams,
                        .slots = o.slots(),
                        .width = o.width,
                        .writes = o.writes,
                        .reads = o.reads,
                        .chunk = o.chunk};
  check_sizes(sizes);
  return sizes;
}

}  // namespace

nn::parameter_specs sdm_layer_parameters(const std::string& name, const sdm_layer_options& o) {
  (void)sizes_in(o);
  const std::int64_t projected = sdm::projected(o.width, o.key_width);
  return {{name + ".in.weight", {projected, o.width}, nn::uniform_over(o.width)},
          {name + ".first_keys.weight", {o.side, o.key_width}, nn::uniform_over(o.key_width)},
          {name + ".second_keys.weight", {o.side, o.key_width}, nn::uniform_over(o.key_width)},
          {name + ".bank", {o.slots(), o.width}, nn::uniform_over(o.width)},
          {name + ".norm.gain", {o.width}, nn::constant{1}},
          {name + ".norm.bias", {o.width}, nn::constant{0}},
          {name + ".out.weight", {o.width, o.width}, nn::uniform_over(o.width)}};
}

template <element B>
sdm_layer<B>::sdm_layer(nn::parameter_set& set, const std::string& name,
                        const sdm_layer_options& options)
    : declared_{name},
      options_{options},
      in_{declared_, "in", set.at(name + ".in.weight")},
      first_keys_{declared_, "first_keys", set.at(name + ".first_keys.weight")},
      second_keys_{declared_, "second_keys", set.at(name + ".second_keys.weight")},
      out_{declared_, "out", set.at(name + ".out.weight")},
      x{declared_.in<float>("x", {any, options.width})},
      y{declared_.out<float>("y")},
      bank_{&set.at(name + ".bank")},
      gain_{&set.at(name + ".norm.gain")},
      bias_{&set.at(name + ".norm.bias")},
      trains_bank_{nn::declare(declared_, "bank", *bank_)},
      trains_norm_{nn::declare(declared_, "norm.gain", *gain_)} {
  const sdm_sizes sizes = sizes_in(options);
  const std::int64_t width = options.width;
  const auto need = [&](std::string_view role, const parameter& p, const dims& shape) {
    nn::require_shape(p, shape, name, role);
  };
  need("in.weight", set.at(name + ".in.weight"), {sdm::projected(width, options.key_width), width});
  need("first_keys.weight", set.at(name + ".first_keys.weight"), {options.side, options.key_width});
  need("second_keys.weight", set.at(name + ".second_keys.weight"),
       {options.side, options.key_width});
  need("out.weight", set.at(name + ".out.weight"), {width, width});
  need("bank", *bank_, {options.slots(), width});
  need("norm.gain", *gain_, {width});
  need("norm.bias", *bias_, {width});
  if (nn::declare(declared_, "norm.bias", *bias_) != trains_norm_) {
    throw usage_error{fmt::format(
        "layer '{}': of norm.gain and norm.bias only one has a gradient buffer; give both of them "
        "one, or none",
        name)};
  }
  declare_keys(declared_, {sizes, options.rows, options.wide_bank_grad}, dtype_of<B>);
  declared_.key("retention", std::bit_cast<std::uint32_t>(options.retention));
}

template <element B>
sdm_sizes sdm_layer<B>::sizes_of(std::int64_t rows) const {
  sdm_sizes sizes = sizes_in(options_);
  if (rows % sizes.streams != 0) {
    throw usage_error{fmt::format(
        "layer '{}': x has {} rows, which are not as many tokens for each of {} streams; give a "
        "multiple of {}",
        declared_.name(), rows, sizes.streams, sizes.streams)};
  }
  sizes.tokens = rows / sizes.streams;
  return sizes;
}

template <element B>
template <class Make>
typename sdm_layer<B>::parts sdm_layer<B>::make_parts(const sdm_sizes& sizes, Make&& make) const {
  const std::int64_t m = sizes.streams * sizes.tokens;
  const auto floats = [&](const char* name, std::int64_t count) {
    return make.template operator()<float>(name, dims{count});
  };
  const auto indices = [&](const char* name, std::int64_t count) {
    return make.template operator()<std::int32_t>(name, dims{count});
  };
  return {floats("value", m * sizes.width),
          floats("strength", m),
          floats("log decay", m),
          floats("first queries", 2 * m * options_.key_width),
          floats("second queries", 2 * m * options_.key_width),
          indices("written slots", m * sizes.writes),
          indices("read slots", m * sizes.reads),
          floats("write weights", m * sizes.writes),
          floats("read weights", m * sizes.reads)};
}

template <element B>
void sdm_layer<B>::address(site at, const sdm_sizes& sizes, view<const float> first_scores,
                           view<const float> second_scores, const parts& to) const {
  const auto half = static_cast<std::size_t>(sizes.streams * sizes.tokens * options_.side);
  launch(at, product_key_top, read<float>{first_scores.subview(0, half)},
         read<float>{second_scores.subview(0, half)}, write(to.k_idx), write(to.k_val),
         options_.side, sizes.writes, sizes.tokens);
  launch(at, product_key_top, read<float>{first_scores.subview(half, half)},
         read<float>{second_scores.subview(half, half)}, write(to.q_idx), write(to.q_val),
         options_.side, sizes.reads, sizes.tokens);
}

template <element B>
void sdm_layer<B>::forward(forward_scope& run) const {
  const std::int64_t m = run.shape(x)[0];
  const sdm_sizes sizes = sizes_of(m);
  const std::int64_t width = sizes.width;
  const auto save = [&]<class T>(std::string_view name, const dims& shape) {
    return run.save<T>(name, shape);
  };
  const auto scratch = [&]<class T>(const dims& shape) { return run.scratch<T>(shape); };

  const view<B> bank = run.save<B>("bank", {sizes.rows(), width});
  begin(run, bank);
  const parts p = make_parts(sizes, save);
  const view<float> z = run.scratch<float>({m, in_.n()});
  in_.forward(run, run[x], z);
  launch(run, sdm_split, to_read(z), write(p.v), write(p.first), write(p.second), write(p.beta),
         write(p.g), width, options_.key_width, options_.retention);
  const view<float> first_scores = run.scratch<float>({2 * m, options_.side});
  const view<float> second_scores = run.scratch<float>({2 * m, options_.side});
  first_keys_.forward(run, p.first, first_scores);
  second_keys_.forward(run, p.second, second_scores);
  address(run, sizes, first_scores, second_scores, p);

  auto context = make_context<B>(sizes, options_.rows, save);
  const view<float> readings = run.save<float>("readings", {m, width});
  sdm_forward<B>(run, sizes, options_.rows, {p.k_idx, p.k_val, p.v, p.beta, p.g, p.q_idx, p.q_val},
                 context, bank, make_forward_scratch<float>(sizes, scratch), readings);

  const view<float> normed = run.save<float>("normed readings", {m, width});
  const view<float> stats = run.save<float>("mean and inverse deviation", {m, 2});
  launch(run, layer_norm_saving, to_read(readings), read<float>{nn::values_of(*gain_)},
         read<float>{nn::values_of(*bias_)}, write(normed), write(stats), width, norm_eps);
  const view<float> change = run.scratch<float>({m, width});
  out_.forward(run, normed, change);
  launch(run, add, read<float>{run[x]}, to_read(change), write(run.make(y, {m, width})));
}

template <element B>
template <class G>
void sdm_layer<B>::backward_in(backward_scope& run) const {
  const std::int64_t m = run.shape(x)[0];
  const sdm_sizes sizes = sizes_of(m);
  const std::int64_t width = sizes.width;
  const auto saved = [&]<class T>(std::string_view name, const dims&) {
    return run.saved<T>(name);
  };
  const auto scratch = [&]<class T>(const dims& shape) { return run.scratch<T>(shape); };
  const auto floats = [&](const dims& shape) { return run.scratch<float>(shape); };
  const parts p = make_parts(sizes, saved);
  const view<const float> dy = run.grad(y);

  const view<float> dnormed = floats({m, width});
  const view<float> dreadings = floats({m, width});
  const read<float> readings{run.saved<float>("readings")};
  const read<float> stats{run.saved<float>("mean and inverse deviation")};
  out_.backward(run, run.saved<float>("normed readings"), dy, dnormed);
  launch(run, layer_norm_input_grad, readings, read<float>{nn::values_of(*gain_)}, stats,
         to_read(dnormed), write(dreadings), width);
  if (trains_norm_) {
    const delivery gain = run.add_to(*gain_);
    const delivery bias = run.add_to(*bias_);
    launch(run, layer_norm_weight_grad, readings, stats, to_read(dnormed), inout<float>{gain.to},
           inout<float>{bias.to}, read<std::int32_t>{gain.rule}, read<std::int32_t>{bias.rule},
           width);
  }

  const view<G> cotangent = run.scratch<G>({sizes.rows(), width});
  launch(run, sdm_cast<G, B>, read<B>{view<const B>{}}, write<G>{cotangent});
  const sdm_gradients<float> of{floats({m, sizes.writes}), floats({m, width}), floats({m}),
                                floats({m}), floats({m, sizes.reads})};
  auto context = make_context<B>(sizes, options_.rows, saved);
  sdm_backward<B, G>(
      run, sizes, options_.rows, {p.k_idx, p.k_val, p.v, p.beta, p.g, p.q_idx, p.q_val}, context,
      run.saved<B>("bank"), dreadings, cotangent, make_backward_scratch<float>(sizes, scratch), of);
  if (trains_bank_) {
    const delivery d = run.add_to(*bank_);
    launch(run, sdm_bank_grad<G>, read<G>{cotangent}, inout<float>{d.to},
           read<std::int32_t>{d.rule}, sizes.streams);
  }

  const view<float> dfirst_scores = floats({2 * m, options_.side});
  const view<float> dsecond_scores = floats({2 * m, options_.side});
  const auto half = static_cast<std::size_t>(m * options_.side);
  launch(run, product_key_grad, to_read(p.k_idx), to_read(p.k_val), to_read(of.k_val),
         write(dfirst_scores.subview(0, half)), write(dsecond_scores.subview(0, half)),
         options_.side, sizes.writes);
  launch(run, product_key_grad, to_read(p.q_idx), to_read(p.q_val), to_read(of.q_val),
         write(dfirst_scores.subview(half, half)), write(dsecond_scores.subview(half, half)),
         options_.side, sizes.reads);
  const view<float> dfirst = floats({2 * m, options_.key_width});
  const view<float> dsecond = floats({2 * m, options_.key_width});
  first_keys_.backward(run, p.first, dfirst_scores, dfirst);
  second_keys_.backward(run, p.second, dsecond_scores, dsecond);

  const view<float> dz = floats({m, in_.n()});
  launch(run, sdm_join, to_read(of.v), to_read(dfirst), to_read(dsecond), to_read(of.beta),
         to_read(of.g), to_read(p.beta), to_read(p.g), write(dz), width, options_.key_width);
  if (!run.wants(x)) {
    in_.backward(run, run.saved(x), dz, {});
    return;
  }
  const view<float> through = floats({m, width});
  in_.backward(run, run.saved(x), dz, through);
  launch(run, add, read<float>{dy}, to_read(through), write(run.grad(x)));
}

template <element B>
void sdm_layer<B>::backward(backward_scope& run) const {
  if (options_.wide_bank_grad) {
    backward_in<float>(run);
  } else {
    backward_in<B>(run);
  }
}

template <element B>
void sdm_layer<B>::begin(site at, view<B> bank) const {
  launch(at, sdm_expand<B>, read<float>{nn::values_of(*bank_)}, write<B>{bank}, options_.streams);
}

template <element B>
void sdm_layer<B>::step(step_scope& run, view<const float> x_in, view<B> bank,
                        view<float> to) const {
  sdm_sizes sizes = sizes_in(options_);
  sizes.tokens = 1;
  sizes.chunk = 1;
  const std::int64_t m = sizes.streams;
  const auto scratch = [&]<class T>(std::string_view, const dims& shape) {
    return run.scratch<T>(shape);
  };
  const parts p = make_parts(sizes, scratch);
  const view<float> z = run.scratch<float>({m, in_.n()});
  in_.apply(run, x_in, z);
  launch(run, sdm_split, to_read(z), write(p.v), write(p.first), write(p.second), write(p.beta),
         write(p.g), sizes.width, options_.key_width, options_.retention);
  const view<float> first_scores = run.scratch<float>({2 * m, options_.side});
  const view<float> second_scores = run.scratch<float>({2 * m, options_.side});
  first_keys_.apply(run, p.first, first_scores);
  second_keys_.apply(run, p.second, second_scores);
  address(run, sizes, first_scores, second_scores, p);

  const view<float> readings = run.scratch<float>({m, sizes.width});
  launch(run, sdm_step<B>, inout<B>{bank}, to_read(p.k_idx), to_read(p.k_val), to_read(p.v),
         to_read(p.beta), to_read(p.g), to_read(p.q_idx), to_read(p.q_val), write(readings), sizes);
  const view<float> normed = run.scratch<float>({m, sizes.width});
  launch(run, layer_norm, to_read(readings), read<float>{nn::values_of(*gain_)},
         read<float>{nn::values_of(*bias_)}, write(normed), sizes.width, norm_eps);
  const view<float> change = run.scratch<float>({m, sizes.width});
  out_.apply(run, normed, change);
  launch(run, add, read<float>{x_in}, to_read(change), write(to));
}

template class sdm_layer<float>;
template class sdm_layer<bf16>;

}  // namespace reprise
