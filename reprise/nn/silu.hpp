// silu: the sigmoid linear unit, x / (1 + e^-x), and its backward; ops/silu.hpp has the
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

class silu {
  signature declared_;

 public:
  explicit silu(const std::string& name = "silu");

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;
};

}  // namespace reprise::nn
