// frozen_batch_norm: a batch norm by its running statistics, as inference has it;
// ops/batch_norm.hpp has the formulas.
//
//   x [m, width], gain [width], bias [width], y [m, width]
//
// Rows know nothing of one another, and no statistic moves. Its backward forms the gradient of x
// alone: gain and bias are used and not trained; in a network that is trained on with it they need
// no gradient buffers. It reads the statistics as they are by then, so nobody moves them between a
// forward and its backward. For graphed_op; a value, which may be copied; its parameters and
// statistics outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/scopes.hpp"
#include "reprise/nn/running_stats.hpp"

namespace reprise::nn {

class frozen_batch_norm {
  signature declared_;

 public:
  // Throws usage_error when gain and bias are no [width] of f32, and for an eps that is not over 0.
  frozen_batch_norm(parameter& gain, parameter& bias, const running_stats& stats, float eps = 1e-5F,
                    const std::string& name = "frozen_batch_norm");

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  friend class batch_norm;
  frozen_batch_norm(parameter& gain, parameter& bias, view<float> running, float eps,
                    const std::string& name);

  parameter* gain_;
  parameter* bias_;
  view<float> running_;
  std::int64_t width_;
  float eps_;
};

}  // namespace reprise::nn
