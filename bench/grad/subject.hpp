// A graphed layer with its weight, its inputs and a cotangent: ready to be called.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/grad/layer.hpp"

namespace reprise::bench {

class subject {
 public:
  // Two of the same shape and seed are given the same numbers. All that is given outlives it.
  subject(std::string name, pool& memory, stream_ref stream, byte_budget& budget,
          const layer_shape& shape, const graphed_options& options, int seed);
  subject(const subject&) = delete;
  subject& operator=(const subject&) = delete;

  forward_result forward() { return op_.forward(stream_, operands{given_}); }
  forward_result infer() { return op_.infer(stream_, operands{given_}); }
  grad_result backward(const forward_ticket& ticket) {
    return op_.backward(stream_, ticket, operands{cotangent_});
  }

  graphed_op<layer>& op() { return op_; }
  const layer_shape& shape() const { return shape_; }
  view<const float> input_values(std::size_t i) const { return x_[i].get(); }
  trained_weight& weight() { return weight_; }

 private:
  stream_ref stream_;
  layer_shape shape_;
  trained_weight weight_;
  graphed_op<layer> op_;
  std::vector<tensor<float>> x_;
  tensor<float> dy_;
  std::vector<operand> given_;
  std::vector<operand> cotangent_;
};

// How an op answered, beside how it was to.
struct op_counts {
  std::string what;
  grad_counts seen;
  grad_counts planned;
  bool equal = true;  // outputs and gradients have the bits of an op that records nothing

  // One line; empty when all is as planned. Times are not compared.
  std::string failure() const;
};

// Runs a forward and a backward of each, and compares outputs and all gradients. Afterwards both
// weights have the gradient of that one backward.
bool same_bits(stream_ref stream, subject& a, subject& b);

std::vector<float> on_host(stream_ref stream, view<const float> from);

}  // namespace reprise::bench
