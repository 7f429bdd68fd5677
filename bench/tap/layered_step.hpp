// A step of layers that take residual buffers in turns, as a model does that keeps no history: each
// marks the residual that it reads, which a later one overwrites.
#pragma once

#include <vector>

#include "bench/tap/marked_step.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

struct layered_shape {
  int layers = 36;
  std::size_t weight_bytes = 0;    // of each layer, a multiple of 16
  std::size_t residual_bytes = 0;  // a multiple of 4
  int buffers = 3;                 // 2 or more: a residual is overwritten so many layers later
};

// Of each layer its own, so that no cache holds them.
class layer_weights {
 public:
  layer_weights(pool& memory, stream_ref stream, int layers, std::size_t bytes);

  view<const std::int32_t> of(int layer) const;

 private:
  std::size_t words_;
  buffer<std::int32_t> all_;
};

class layered_step {
 public:
  // Marks {"resid_pre", 0} to the last layer. The weights outlive it.
  layered_step(pool& memory, stream_ref stream, const layer_weights& weights,
               const layered_shape& shape);
  layered_step(const layered_step&) = delete;
  layered_step& operator=(const layered_step&) = delete;

  marked_step marked() const;

 private:
  void body(step_scope& run) const;
  // What the residual before this layer holds; of the layer behind the last: the output.
  float value(int layer, std::size_t element) const {
    return source_values_[element] + static_cast<float>(layer * (layer + 1) / 2);
  }
  bool holds(int layer, std::span<const std::byte> bytes) const;

  const layer_weights& weights_;
  layered_shape shape_;
  dims residual_;
  std::vector<float> source_values_;
  buffer<float> source_;  // the residual before the first layer, which nobody overwrites
  signature declared_{"layers"};
  output<float> out_;
  step what_;
};

}  // namespace reprise::bench
