// linear: a layer's product with its weights, y = x w^T + bias, and its backward.
//
//   x [m, k], weight [n, k], bias [n] or none, y [m, n]
//   dx = dy w;  the weight's gradient is dy^T x, the bias's the sum of the rows of dy
//
// Under cast_mode::bf16 x and the weight are rounded to bf16 in every forward, and dy in every
// backward; sums, the bias and all that is handed out stay f32, and the gradient of a rounding
// counts as one. Products follow the precision in force. A parameter without a gradient buffer is
// not trained. For graphed_op; a value, which may be copied; its parameters outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/scopes.hpp"
#include "reprise/nn/product.hpp"

namespace reprise::nn {

class linear {
  signature declared_;
  product product_;

 public:
  // Throws usage_error when the weight is no [n, k] of f32, or the bias no [n].
  explicit linear(parameter& weight, const std::string& name = "linear");
  linear(parameter& weight, parameter& bias, const std::string& name = "linear");

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  linear(parameter& weight, parameter* bias, const std::string& name);
};

}  // namespace reprise::nn
