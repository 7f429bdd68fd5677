// What a run of the workload `train` is asked for: the sizes of its model, how it trains, and which
// parts of a step are recorded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "reprise/grad/precision.hpp"
#include "workloads/train/data.hpp"

namespace reprise::train {

// Which parts of a step are recorded and replayed.
struct graphed_parts {
  bool network = true;
  bool heads = true;
  bool loss = true;

  bool any() const { return network || heads || loss; }
  bool operator==(const graphed_parts&) const = default;
};

// "network,loss", or "none". Throws usage_error, naming --graphed, for a word that is no part.
graphed_parts parts_from(std::string_view text);
std::string text_of(const graphed_parts& parts);

// What the loss is multiplied with before its backward, so that small gradients survive a narrow
// type; gradients are divided by it again.
struct scaling {
  bool dynamic = true;
  float scale = 65536;  // at first; without `dynamic` always
};

// "dynamic", or a number. Throws usage_error, naming --loss-scale.
scaling scaling_from(std::string_view text);
std::string text_of(const scaling& scale);

struct train_options {
  std::filesystem::path data{packaged_data};
  std::int64_t epochs = 3;
  std::int64_t batch = 128;           // images of a micro-batch
  std::int64_t accumulate = 2;        // micro-batches of a window
  std::int64_t subset = 0;            // images that are trained on; 0: all
  std::int64_t unlabelled_every = 0;  // the labels of each N-th micro-batch are dropped; 0: of none

  std::int64_t hidden = 256;  // of the trunk
  std::int64_t width = 128;   // of what the trunk hands to its heads
  std::int64_t mask_hidden = 64;
  float dropout = 0.05F;
  float mask_weight = 0.2F;  // of the masks' loss in the whole loss

  float learning_rate = 4e-3F;  // at first
  float clip = 1;               // the norm of all gradients, at most; 0: any
  float ema = 0.98F;            // decay of the average of weights, which is what is validated
  scaling scale;
  cast_mode casts = cast_mode::none;
  graphed_parts graphed;
  std::uint64_t seed = 0;

  bool verify = false;  // a plain run beside, compared after each window
};

// Throws usage_error, naming the option and what would do, for options that make no run.
void check(const train_options& options);

}  // namespace reprise::train
