// The network that `bench train` trains: layers of a product, a layer norm and a GELU, all of one
// width, under a mean squared error; and one batch that every step is made of.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/grad/tensor.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/nn/sequence.hpp"

namespace reprise::bench {

struct deep_shape {
  std::int64_t layers = 24;
  std::int64_t width = 256;
  std::int64_t batch = 32;
};

nn::parameter_specs deep_parameters(const deep_shape& shape);

// Layers [first, last) as one op. The set outlives it.
nn::sequence deep_layers(std::string name, nn::parameter_set& set, std::int64_t first,
                         std::int64_t last);

// Bytes of device memory that a step has to move where nothing stays in a cache: the weights are
// read forwards, backwards and by the update, which writes them; their gradients are written and
// read.
std::size_t bytes_of_a_step(const deep_shape& shape);

struct deep_batch {
  tensor<float> x;
  tensor<float> target;
};
// The same numbers for the same shape, in the order of the stream.
deep_batch make_batch(const deep_shape& shape, pool& memory, stream_ref stream);

}  // namespace reprise::bench
