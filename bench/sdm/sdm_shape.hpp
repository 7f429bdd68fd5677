// The sizes that `bench sdm` measures, and the limits that go with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/sdm/layer.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::bench {

struct sdm_chunk {
  std::int64_t tokens = 64;
  std::optional<double> layer_limit_us;  // forward and backward of the layer
};

struct sdm_shape {
  std::string name;
  std::int64_t streams = 1;
  std::int64_t tokens = 1;
  std::int64_t side = 1;  // slots are its square
  std::int64_t width = 1;
  std::int64_t key_width = 64;
  std::int64_t writes = 1;
  std::int64_t reads = 1;
  std::vector<sdm_chunk> chunks;        // each is measured
  std::optional<double> step_limit_us;  // one decoded token, the op alone

  sdm_sizes sizes(std::int64_t chunk) const {
    return {.streams = streams,
            .slots = side * side,
            .width = width,
            .tokens = tokens,
            .writes = writes,
            .reads = reads,
            .chunk = chunk};
  }
  // One token of one stream.
  sdm_sizes one_token() const {
    sdm_sizes one = sizes(1);
    one.streams = one.tokens = 1;
    return one;
  }
  sdm_layer_options layer(std::int64_t chunk) const {
    return {.streams = streams,
            .side = side,
            .width = width,
            .key_width = key_width,
            .writes = writes,
            .reads = reads,
            .chunk = chunk};
  }
};

inline sdm_shape small_sdm_shape() {
  return {.name = "small",
          .streams = 2,
          .tokens = 128,
          .side = 32,
          .width = 256,
          .writes = 8,
          .reads = 8,
          .chunks = {{64, 350.0}},
          .step_limit_us = std::nullopt};
}
inline sdm_shape large_sdm_shape() {
  return {.name = "large",
          .streams = 1,
          .tokens = 8192,
          .side = 192,
          .width = 768,
          .writes = 64,
          .reads = 64,
          .chunks = {{128, 12000.0}, {32, 20000.0}},
          .step_limit_us = 15.0};
}

// One size with more and more slots.
struct sdm_growth_shape {
  std::int64_t tokens = 1;
  std::int64_t width = 1;
  std::int64_t writes = 1;
  std::int64_t reads = 1;
  std::int64_t chunk = 64;
  std::vector<std::int64_t> slots;
};

inline constexpr double growth_limit_percent = 15.0;

inline sdm_growth_shape growth_shape(bool gpu) {
  if (gpu) return {2048, 768, 64, 64, 128, {36864, 65536, 131072, 262144}};
  return {256, 64, 8, 8, 64, {1024, 4096, 16384}};
}

}  // namespace reprise::bench
