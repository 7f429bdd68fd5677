// The weights of a Llama-style model on a device, as parameters that a step can use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/replay/signature.hpp"
#include "workloads/decode/model_config.hpp"

namespace reprise::decode {

// Matrices are [out, in], as in checkpoints: y = x W^T.
struct layer_weights {
  parameter attention_norm, query, key, value, attention_out;
  parameter mlp_norm, gate, up, down;
};

struct model_weights {
  dtype storage = dtype::f32;  // f32 or bf16, of all of them
  parameter embedding;         // [vocabulary, width]
  std::vector<layer_weights> layers;
  parameter final_norm;
  parameter output;  // the embedding itself when tied

  std::vector<block> memory;  // what the parameters lie in
};

// What to do with the file's own types.
enum class weight_storage : std::uint8_t { as_file, f32, bf16 };

// Reads model.safetensors, or the shards its index names, converts and copies to the device in the
// order of the stream. As the file says: bf16 when every tensor is bf16, else f32. Throws
// usage_error, one line that names the file or tensor, when one is missing, unknown, or of a shape
// that the configuration does not give it.
model_weights load_weights(pool& into, stream_ref stream, const std::filesystem::path& folder,
                           const model_config& config, weight_storage storage);

// Weights drawn on the device, the same for the same seed: sizes without a model.
model_weights random_weights(pool& into, stream_ref stream, const model_config& config,
                             weight_storage storage, std::uint64_t seed);

}  // namespace reprise::decode
