// The model: a trunk that both groups of heads share, and the loss of what they say.
//
//   trunk   linear 784 to hidden, batch norm, gelu, dropout, linear to width, batch norm, gelu
//   class   linear width to 10                                          softmax cross entropy
//   mask    linear width to mask hidden, gelu, linear to 784            binary cross entropy
//
//   loss = that of the class + mask weight * that of the mask
//
// Sizes are those of the options.
#pragma once

#include <array>
#include <vector>

#include "reprise/nn/parameters.hpp"
#include "reprise/nn/running_stats.hpp"
#include "reprise/nn/sequence.hpp"
#include "reprise/train/graphed_heads.hpp"
#include "reprise/train/graphed_loss.hpp"
#include "workloads/train/options.hpp"

namespace reprise::train {

// Groups of heads, and terms of the loss, in their order.
inline constexpr std::size_t class_group = 0;
inline constexpr std::size_t mask_group = 1;
inline constexpr std::size_t groups = 2;
inline constexpr std::array<const char*, groups> group_names{"class", "mask"};

nn::parameter_specs model_parameters(const train_options& options);

// Of the two batch norms of the trunk.
struct norm_statistics {
  nn::running_stats first;
  nn::running_stats second;
};
norm_statistics make_statistics(pool& memory, const train_options& options, stream_ref stream);

// All that they refer to outlives them.
nn::sequence make_trunk(nn::parameter_set& set, const norm_statistics& statistics,
                        philox_counter& draws, const train_options& options);
std::vector<head_group> make_groups(nn::parameter_set& set);
std::vector<loss_term> make_terms(const train_options& options);

}  // namespace reprise::train
