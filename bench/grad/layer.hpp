// The op that is measured: y = (x1 + x2 + ... + xn) w^T, and gelu of that where it activates.
//
//   xi [rows, in], w [out, in], y [rows, out], all f32
//
// A replay of its forward is one launch, however many inputs it has and however large the weight
// is. The op refers to the weight, which outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/grad/graphed_op.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise::bench {

struct layer_shape {
  int inputs = 1;
  std::int64_t rows = 1;
  std::int64_t in = 64;
  std::int64_t out = 64;
  bool activates = false;

  // Nodes of a recording of the forward, and of a backward that forms the gradients of all inputs.
  // The first takes words and rules from the host, others bring what the caller gave, and the last
  // leave outputs, and gradients that are cloned, where the caller wants them.
  std::int64_t forward_nodes() const { return 1 + inputs + forward_kernels() + 1; }
  std::int64_t backward_nodes(gradients returned) const {
    return 2 + backward_kernels() + inputs - 1 + (returned == gradients::cloned ? inputs : 0);
  }
  // Kernels of the bodies alone.
  std::int64_t forward_kernels() const { return inputs - 1 + 1 + (activates ? 1 : 0); }
  std::int64_t backward_kernels() const { return 2 + (activates ? 1 : 0); }
};

// A weight that is trained, with its gradient. Stays where it is: ops point to it.
struct trained_weight {
  trained_weight(pool& memory, stream_ref stream, const layer_shape& shape, int seed);
  trained_weight(const trained_weight&) = delete;
  trained_weight& operator=(const trained_weight&) = delete;

  buffer<float> value;
  buffer<float> gradient;
  parameter at;
};

class layer {
 public:
  layer(std::string name, const layer_shape& shape, parameter& weight);

  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;
  layer_shape shape_;
  parameter* weight_;

 public:
  std::vector<input<float>> x;
  output<float> y;
};

// Numbers in [-1, 1), others for each seed, on the device in the order of the stream.
void fill_numbers(stream_ref stream, view<float> to, int seed);

}  // namespace reprise::bench
