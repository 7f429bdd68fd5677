// A layer around the sparse-delta-memory op (op.hpp), for networks of nn:
//
//   z = x in^T                       value, queries, gates: one product (projection.hpp)
//   k, q                             the W and the R best slots of each token by product keys
//                                    (product_keys.hpp), for writes and for reads, on one set of
//                                    keys
//   beta, g                          gates: how strongly a token writes, what its slots keep
//   readings                         of the memory, from the initial bank on
//   y = x + norm(readings) out^T     layer norm, a product, and the way around
//
//   x, y [P * T, D]: P streams of T tokens, one behind the other; T is that of the call
//   S = side * side slots of width D for each stream
//
// Forward and backward are one recording each: copies of the initial bank, addressing and products
// lie in it. No bank outlives a call, but in decoding: `step` takes one token of each stream with
// banks that the caller keeps. For graphed_op; a value; its parameters outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/nn/parameters.hpp"
#include "reprise/nn/product.hpp"
#include "reprise/replay/step.hpp"
#include "reprise/sdm/op.hpp"

namespace reprise {

struct sdm_layer_options {
  std::int64_t streams = 1;     // P
  std::int64_t side = 32;       // S is its square
  std::int64_t width = 256;     // D
  std::int64_t key_width = 64;  // of half a query
  std::int64_t writes = 8;      // W
  std::int64_t reads = 8;       // R
  std::int64_t chunk = 64;
  saved_rows rows = saved_rows::as_stored;
  bool wide_bank_grad = false;
  float retention = 4.0F;  // added to what the gate of g is given: it begins at e^g = 0.98

  std::int64_t slots() const { return side * side; }
};

// NAME.in.weight [D + 4 K + 2, D], NAME.first_keys.weight, NAME.second_keys.weight [side, K],
// NAME.bank [S, D], NAME.norm.gain, NAME.norm.bias [D], NAME.out.weight [D, D], with the values
// that training begins with. Throws usage_error for sizes that do not fit: side is 1024 at most,
// writes and reads are 128 at most.
nn::parameter_specs sdm_layer_parameters(const std::string& name, const sdm_layer_options& options);

// B: what banks are stored in, f32 or bf16.
template <element B>
class sdm_layer {
  signature declared_;
  sdm_layer_options options_;
  nn::product in_, first_keys_, second_keys_, out_;

 public:
  // Of the parameters of that name in the set, which outlives the layer. Throws usage_error where
  // one is missing or of another shape, and as check_sizes does.
  sdm_layer(nn::parameter_set& set, const std::string& name, const sdm_layer_options& options);

  const input<float> x;
  const output<float> y;

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

  // x, y [P, D]; bank [P * S, D]: the memory before the token, then behind it. In a step's body.
  void step(step_scope& run, view<const float> x, view<B> bank, view<float> y) const;
  // Banks before the first token, in stream order: copies of the initial one.
  void begin(site at, view<B> bank) const;

 private:
  // What the parts of a call are, all of [P * T, ...]; `first` and `second` have rows for writes,
  // then for reads.
  struct parts {
    view<float> v, beta, g;
    view<float> first, second;
    view<std::int32_t> k_idx, q_idx;
    view<float> k_val, q_val;
  };
  template <class Make>
  parts make_parts(const sdm_sizes& sizes, Make&& make) const;
  void address(site at, const sdm_sizes& sizes, view<const float> first_scores,
               view<const float> second_scores, const parts& to) const;
  template <class G>
  void backward_in(backward_scope& run) const;
  sdm_sizes sizes_of(std::int64_t rows) const;

  parameter* bank_;
  parameter* gain_;
  parameter* bias_;
  bool trains_bank_;
  bool trains_norm_;
};

}  // namespace reprise
