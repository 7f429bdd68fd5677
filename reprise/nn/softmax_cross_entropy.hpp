// softmax_cross_entropy: the mean over rows of -log softmax(logits)[target], and its backward;
// ops/softmax_cross_entropy.hpp has the formulas.
//
//   logits [m, classes], targets [m], int32; loss [1]
//
// Rows whose target is negative do not count, neither in the sum nor in what it is divided by; a
// target that is no class makes the loss NaN. Losses of one shape are the same work. For
// graphed_op; a value, which may be copied.
#pragma once

#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class softmax_cross_entropy {
  signature declared_;

 public:
  explicit softmax_cross_entropy(const std::string& name = "softmax_cross_entropy");

  const input<float> logits;
  const input<std::int32_t> targets;
  const output<float> loss;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;
};

}  // namespace reprise::nn
