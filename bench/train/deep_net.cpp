#include "bench/train/deep_net.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"

namespace reprise::bench {

namespace {

// On [-1, 1), without a pattern that a layer norm would take away.
tensor<float> numbers(pool& memory, stream_ref stream, const dims& shape, std::uint32_t seed) {
  std::vector<float> values(shape.count());
  std::uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;  // Numerical Recipes' linear congruential generator
    value = static_cast<float>(state >> 8) * 0x1p-23F - 1.0F;
  }
  tensor<float> made = make_tensor<float>(memory, shape, stream);
  copy(stream, read<float>{view<const float>{values.data(), values.size()}},
       write<float>{made.get()});
  stream.synchronize();
  return made;
}

}  // namespace

nn::parameter_specs deep_parameters(const deep_shape& shape) {
  nn::parameter_specs all;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string name = fmt::format("layers.{}", i);
    const nn::parameter_specs layer =
        nn::joined({nn::linear_parameters(name + ".product", shape.width, shape.width),
                    nn::norm_parameters(name + ".norm", shape.width)});
    all.insert(all.end(), layer.begin(), layer.end());
  }
  return all;
}

nn::sequence deep_layers(std::string name, nn::parameter_set& set, std::int64_t first,
                         std::int64_t last) {
  nn::sequence made{std::move(name)};
  for (std::int64_t i = first; i < last; ++i) {
    const std::string layer = fmt::format("layers.{}", i);
    made.add(nn::linear{set.at(layer + ".product.weight"), set.at(layer + ".product.bias")});
    made.add(nn::layer_norm{set.at(layer + ".norm.gain"),
                            set.at(layer + ".norm.bias"),
                            {.then = nn::activation::gelu}});
  }
  return made;
}

std::size_t bytes_of_a_step(const deep_shape& shape) {
  const auto weights =
      static_cast<std::size_t>(shape.layers * (shape.width * shape.width + 3 * shape.width));
  return weights * sizeof(float) * 6;
}

deep_batch make_batch(const deep_shape& shape, pool& memory, stream_ref stream) {
  return {numbers(memory, stream, {shape.batch, shape.width}, 1),
          numbers(memory, stream, {shape.batch, shape.width}, 2)};
}

}  // namespace reprise::bench
