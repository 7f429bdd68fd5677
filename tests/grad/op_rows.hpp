// What each kind of op has for the options of a call to act on: the tables of G6. An op without a
// row fails that test, and an op class without a row fails op_rows_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace reprise::test {

struct op_row {
  std::uint64_t gradients;  // of inputs
  bool follows_precision;   // its work is another under other casts
};

// The tiny ops.
inline const std::map<std::string, op_row>& op_rows() {
  static const std::map<std::string, op_row> all{
      {"scaled", {1, true}},     {"noisy", {1, false}},  {"counted", {1, false}},
      {"rewinding", {1, false}}, {"joined", {2, false}}, {"remembering", {1, false}},
      {"twofold", {1, false}},
  };
  return all;
}

// Layers and losses.
inline const std::map<std::string, op_row>& nn_op_rows() {
  static const std::map<std::string, op_row> all{
      {"linear", {1, true}},
      {"layer_norm", {1, false}},
      {"gelu", {1, false}},
      {"silu", {1, false}},
      {"dropout", {1, false}},
      {"softmax_cross_entropy", {1, false}},
      {"squared_error", {2, false}},
      {"embedding", {0, false}},
      {"binary_cross_entropy", {2, false}},
      {"batch_norm", {1, false}},
      {"frozen_batch_norm", {1, false}},
      {"sequence", {1, true}},
  };
  return all;
}

}  // namespace reprise::test
