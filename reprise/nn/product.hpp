// One product of a layer with a weight of its own, y = x w^T + bias, and its backward, under the
// casts and the products in force (grad/precision.hpp). For this room's layers and those of others.
//
//   x [m, k], w [n, k], bias [n] or none, y [m, n]
//
// Under bf16 casts both operands are rounded first and saved as they then are, under the product's
// name; else the backward reads the x that it is given again. A value; its parameters outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class product {
 public:
  // Declares the parameters in the layer's signature as `role`.weight and `role`.bias, or as weight
  // and bias where `role` is empty. A parameter without a gradient buffer is not trained. Throws
  // usage_error, naming the layer, unless weight is [n, k], of 1 at least, and bias [n], of f32.
  product(signature& in, const std::string& role, parameter& weight, parameter* bias = nullptr);

  std::int64_t n() const { return n_; }
  std::int64_t k() const { return k_; }

  // For inference: no casts, products as in force on this thread.
  void apply(site at, view<const float> x, view<float> y) const;
  void forward(forward_scope& run, view<const float> x, view<float> y) const;
  // Delivers the gradients of weight and bias, and writes that of x to `dx` unless it is empty.
  void backward(backward_scope& run, view<const float> x, view<const float> dy,
                view<float> dx) const;

 private:
  template <class A>
  void form_gradients(backward_scope& run, view<const A> dy, view<const A> x, view<const A> weight,
                      view<float> dx) const;
  void form_parameter_gradients(backward_scope& run, view<const float> dy,
                                view<const float> x) const;

  parameter* weight_;
  parameter* bias_;
  std::int64_t n_;
  std::int64_t k_;
  bool trains_weight_;
  bool trains_bias_;
  std::string rounded_x_;  // the names that a backward finds the rounded operands under
  std::string rounded_weight_;
};

}  // namespace reprise::nn
