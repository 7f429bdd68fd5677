// What a run of the workload `memory` is asked for: the sizes of its model, how it trains, and what
// it writes at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "reprise/base/dtype.hpp"
#include "reprise/grad/options.hpp"
#include "reprise/sdm/layer.hpp"

namespace reprise::memory {

struct memory_options {
  std::filesystem::path text;
  std::int64_t steps = 60;

  std::int64_t batch = 4;     // P: streams of a micro-batch
  std::int64_t context = 64;  // T: bytes of a stream
  std::int64_t layers = 2;    // L
  std::int64_t width = 64;    // D
  std::int64_t side = 16;     // a stream has its square of slots
  std::int64_t writes = 8;    // W
  std::int64_t reads = 8;     // R
  std::int64_t key_width = 16;
  std::int64_t chunk = 32;
  dtype storage = dtype::f32;  // of banks: f32 or bf16
  saved_rows rows = saved_rows::as_stored;
  bool wide_bank_grad = false;

  on_conflict conflict = hold{};
  std::int64_t accumulate = 1;  // K: micro-batches of a step
  // The network is cut in so many spans of neighbouring layers, each checkpointed: its activations
  // are dropped and computed once more before its backward. 1: it is not cut, and keeps them.
  std::int64_t regions = 1;
  float learning_rate = 5e-3F;
  std::uint64_t seed = 0;

  std::string prompt = "And God said";
  std::int64_t sample = 120;  // bytes behind the prompt; 0: none
  float temperature = 0.7F;   // 0: the likeliest byte

  bool eager = false;   // the plain run alone, no capture at all
  bool verify = false;  // a plain run beside, compared after each step
};

// Layers of the network that regions cut: those with a memory, then layer norm, linear, gelu and
// linear.
inline constexpr std::int64_t head_layers = 4;
inline std::int64_t network_layers(const memory_options& options) {
  return options.layers + head_layers;
}

// Layers [first, last) of span i of the regions: as many in each as can be, and one more in the
// first ones.
struct layer_span {
  std::int64_t first;
  std::int64_t last;
};
layer_span span_of(const memory_options& options, std::int64_t i);

// Throws usage_error, naming the option and what would do, for options that make no run.
void check(const memory_options& options);

// Of one of the memory layers, with so many streams.
sdm_layer_options layer_options(const memory_options& options, std::int64_t streams);

}  // namespace reprise::memory
