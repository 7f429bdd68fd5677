// The model: a byte-level language model with sparse delta memories.
//
//   x = embedding of each byte                  [P * T, D]
//   L layers with a memory of their own, each around which x goes (reprise/sdm/layer.hpp)
//   layer norm, linear to 2 D, gelu, linear to the 256 logits of the byte that comes next
//
// Its parameters, and what of it is a network; embedding and loss are ops beside that.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/nn/network.hpp"
#include "reprise/nn/parameters.hpp"
#include "workloads/memory/options.hpp"

namespace reprise::memory {

inline constexpr std::int64_t vocabulary = 256;
inline constexpr float head_norm_eps = 1e-5F;

inline std::int64_t head_width(const memory_options& options) {
  return 2 * options.width;
}

// "layers.3", the name of memory layer i, and what the names of its parameters begin with.
std::string layer_name(std::int64_t i);

// embedding.table, those of the memory layers, head.norm, head.up and head.down.
nn::parameter_specs model_parameters(const memory_options& options);

// The layers between embedding and loss, cut in checkpointed spans where there are several regions.
// The set and the budget outlive it.
nn::network make_network(nn::parameter_set& set, byte_budget& budget, const memory_options& options,
                         const graphed_options& each);

}  // namespace reprise::memory
