// layer_norm: each row less its mean, over its standard deviation, times a gain, plus a bias, and
// its backward; ops/layer_norm.hpp has the formulas and their orders.
//
//   x [m, width], gain [width], bias [width], y [m, width]
//
// With `then = activation::gelu` its y is what nn::gelu makes of that, and so are all gradients,
// bit for bit; but it is one launch forwards, nothing is saved between the two, and a backward
// forms the norm again (ops/layer_norm_gelu.hpp):
//
//   net.add(layer_norm{gain, bias, {.then = activation::gelu}});   // for layer_norm, then gelu
//
// The forward saves the mean and the inverse deviation of each row. A parameter without a gradient
// buffer is not trained; gain and bias are trained together or not at all. For graphed_op; a value,
// which may be copied; its parameters outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

// What a layer applies to its y before it writes it.
enum class activation { none, gelu };

struct layer_norm_options {
  float eps = 1e-5F;
  activation then = activation::none;
  std::string name = "layer_norm";
};

class layer_norm {
  signature declared_;

 public:
  // Throws usage_error when gain and bias are no [width] of f32, or only one has a gradient.
  layer_norm(parameter& gain, parameter& bias, float eps = 1e-5F,
             const std::string& name = "layer_norm");
  layer_norm(parameter& gain, parameter& bias, const layer_norm_options& options);

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  parameter* gain_;
  parameter* bias_;
  std::int64_t width_;
  float eps_;
  activation then_ = activation::none;
  bool trains_gain_;
  bool trains_bias_;
};

}  // namespace reprise::nn
