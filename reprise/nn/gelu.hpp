// gelu: the Gaussian error linear unit in its tanh form, and its backward; ops/gelu.hpp has the
// formulas.
//
//   x [m, width], y [m, width]; elementwise
//
// Layers of one shape are the same work: in checkpointed spans they share their recordings. For
// graphed_op; a value, which may be copied.
#pragma once

#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class gelu {
  signature declared_;

 public:
  explicit gelu(const std::string& name = "gelu");

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;
};

}  // namespace reprise::nn
