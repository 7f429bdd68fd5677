// What a Llama-style model is: sizes and constants out of its config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace reprise::decode {

struct model_config {
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;        // of the residual stream
  std::int64_t inner_width = 0;  // of the gated MLP
  std::int64_t layers = 0;
  std::int64_t heads = 0;  // of queries
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t context = 0;  // tokens of a request, prompt included
  float norm_epsilon = 0;
  double rotary_base = 0;
  bool tied_output = false;  // the output matrix is the embedding
  bool byte_tokens = false;  // a token is a byte: text in, text out
  std::vector<std::int32_t> end_tokens;
};

// Throws usage_error, one line that names the file and the field, when the file is missing or no
// JSON, a field is missing or out of range, or the architecture is one that is not built.
model_config read_model_config(const std::filesystem::path& file);

}  // namespace reprise::decode
