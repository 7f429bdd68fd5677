// binary_cross_entropy: the mean over all elements of what logits of two classes lose against the
// probability of the second, and its backward; ops/binary_cross_entropy.hpp has the formulas.
//
//   logits [m, width], targets [m, width], f32 in [0, 1]; loss [1]
//
// Targets can have a gradient too; those outside of [0, 1] are nobody's probability, and no host
// looks at them. Losses of one shape are the same work. For graphed_op; a value, which may be
// copied.
#pragma once

#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class binary_cross_entropy {
  signature declared_;

 public:
  explicit binary_cross_entropy(const std::string& name = "binary_cross_entropy");

  const input<float> logits;
  const input<float> targets;
  const output<float> loss;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;
};

}  // namespace reprise::nn
