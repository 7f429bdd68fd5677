// batch_norm: each column less its mean over the rows of the batch, over its standard deviation,
// times a gain, plus a bias, and its backward; ops/batch_norm.hpp has the formulas and their
// orders.
//
//   x [m, width], gain [width], bias [width], y [m, width]; m is 2 at least
//
// Each forward moves the running statistics, which are declared state: a warm-up leaves no trace in
// them, and a forward that runs again for its backward does not move them. What it makes does not
// depend on them. The forward saves the mean and the inverse deviation of each column. In inference
// it is another layer, in_inference(), by the running statistics; a network takes that one.
//
// A parameter without a gradient buffer is not trained; gain and bias are trained together or not
// at all. For graphed_op; a value, which may be copied; its parameters and statistics outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/scopes.hpp"
#include "reprise/nn/frozen_batch_norm.hpp"
#include "reprise/nn/running_stats.hpp"

namespace reprise::nn {

struct batch_norm_options {
  float eps = 1e-5F;      // added to the variance
  float momentum = 0.1F;  // how far one batch moves the running statistics towards its own
};

class batch_norm {
  signature declared_;

 public:
  static constexpr bool outputs_ignore_state = true;

  // Throws usage_error when gain and bias are no [width] of f32, or only one has a gradient, and
  // for an eps that is not over 0 or a momentum outside of [0, 1].
  batch_norm(parameter& gain, parameter& bias, const running_stats& stats,
             const batch_norm_options& options = {}, const std::string& name = "batch_norm");

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  // Throws usage_error for a batch of fewer than 2 rows.
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

  // The same gain, bias and statistics, frozen.
  frozen_batch_norm in_inference() const;

 private:
  parameter* gain_;
  parameter* bias_;
  view<float> running_;
  std::int64_t width_;
  batch_norm_options options_;
  bool trains_;
};

}  // namespace reprise::nn
