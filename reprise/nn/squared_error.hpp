// squared_error: the mean over all elements of (x - target)^2, and its backward;
// ops/squared_error.hpp has the formulas.
//
//   x [m, width], target [m, width]; loss [1]
//
// The target can have a gradient too. Losses of one shape are the same work. For graphed_op; a
// value, which may be copied.
#pragma once

#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class squared_error {
  signature declared_;

 public:
  explicit squared_error(const std::string& name = "squared_error");

  const input<float> x;
  const input<float> target;
  const output<float> loss;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;
};

}  // namespace reprise::nn
