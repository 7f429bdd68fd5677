// layer_norm: each row less its mean, over its standard deviation, times a gain, plus a bias, and
// its backward; ops/layer_norm.hpp has the formulas and their orders.
//
//   x [m, width], gain [width], bias [width], y [m, width]
//
// The forward saves the mean and the inverse deviation of each row. A parameter without a gradient
// buffer is not trained; gain and bias are trained together or not at all. For graphed_op; a value,
// which may be copied; its parameters outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class layer_norm {
  signature declared_;

 public:
  // Throws usage_error when gain and bias are no [width] of f32, or only one has a gradient.
  layer_norm(parameter& gain, parameter& bias, float eps = 1e-5F,
             const std::string& name = "layer_norm");

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
  bool trains_gain_;
  bool trains_bias_;
};

}  // namespace reprise::nn
