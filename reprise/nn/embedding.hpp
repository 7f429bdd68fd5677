// embedding: a row of a table for each token, and its backward; ops/embedding.hpp and
// ops/embedding_grad.hpp have the formulas and their orders.
//
//   tokens [m], int32; table [vocabulary, width], y [m, width]
//
// Tokens have no gradient, so only the table's is formed. A token outside of the table gives a row
// of zeros, and adds to no gradient. Under every precision the table and y are f32. A table without
// a gradient buffer is not trained. For graphed_op; a value, which may be copied; its table
// outlives it. No layer of a network, since it reads no floats: it comes in front of one.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/scopes.hpp"

namespace reprise::nn {

class embedding {
  signature declared_;

 public:
  // Throws usage_error when the table is no [vocabulary, width] of f32, each of 1 at least.
  explicit embedding(parameter& table, const std::string& name = "embedding");

  const input<std::int32_t> tokens;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  parameter* table_;
  std::int64_t width_;
  bool trains_table_;
};

}  // namespace reprise::nn
