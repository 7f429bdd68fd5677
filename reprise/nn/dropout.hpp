// dropout: in training, each element is kept with probability 1 - rate, and scaled by one over
// that, or else is zero (Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, "Dropout",
// 2014, scaled in training instead of in inference); ops/dropout.hpp says which numbers decide. Its
// backward does the same to dy, with the numbers of its own forward.
//
//   x [m, width], y [m, width]
//
// At a rate of 0 it copies and draws nothing. A network leaves it out of inference. For graphed_op;
// a value, which may be copied; its counter outlives it.
#pragma once

#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class dropout {
  signature declared_;

 public:
  static constexpr bool only_in_training = true;

  // Throws usage_error unless 0 <= rate < 1.
  dropout(float rate, philox_counter& counter, const std::string& name = "dropout");

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  float rate_;
};

}  // namespace reprise::nn
