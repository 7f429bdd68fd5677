// The forward pass of a Llama-style decoder as steps: one for prefill, one for decoding.
//
// Both are the same body over rows: a row is one token of one request at one position. Activations
// and the key/value cache are f32, weights f32 or bf16. The formulas: RMSNorm (Zhang and Sennrich,
// 2019), rotary embedding in its rotate-half form (Su et al., 2021), grouped-query attention
// (Ainslie et al., 2023), SiLU-gated MLP (Shazeer, 2020).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reprise/device/memory.hpp"
#include "reprise/replay/step.hpp"
#include "workloads/decode/model_config.hpp"
#include "workloads/decode/weights.hpp"

namespace reprise::decode {

// Keys and values of every layer: [slots + 1, kv_heads, capacity, head_dim] each. The last slot is
// the dummy that padded rows write.
struct kv_cache {
  kv_cache(pool& into, stream_ref stream, const model_config& config, std::int64_t slots,
           std::int64_t capacity);

  view<float> keys_of(std::int64_t layer) const;
  view<float> values_of(std::int64_t layer) const;

  std::int64_t slots;
  std::int64_t capacity;  // positions of a slot
  std::size_t per_layer;  // elements
  buffer<float> keys;
  buffer<float> values;
};

// Everything the steps refer to; outlives them.
struct llama {
  llama(pool& into, stream_ref stream, model_config config, model_weights weights,
        std::int64_t slots, std::int64_t capacity);

  model_config config;
  model_weights weights;
  kv_cache cache;
  buffer<float> inverse_frequencies;
};

// What sampling needs of each row; ops/sample.hpp has the meaning.
struct sampling_inputs {
  input<float> temperatures;
  input<float> top_ps;
  input<std::uint64_t> seeds;
  input<std::uint64_t> counters;
};

struct model_step {
  input<std::int32_t> tokens;               // [rows]
  input<std::int32_t> positions;            // [rows], of each token in its request
  input<std::int32_t> slots;                // [rows], of the cache
  std::optional<sampling_inputs> sampling;  // none: the likeliest token
  output<std::int32_t> next;                // [rows, or 1]
  output<float> logits;                     // [rows, or 1; vocabulary]
  step body;
};

// Rows are the tokens of one prompt; the outputs are of its last row. Never captured.
model_step prefill_step(const llama& model, bool sampled);
// Rows are requests, one token each.
model_step decode_step(const llama& model, bool sampled);

}  // namespace reprise::decode
