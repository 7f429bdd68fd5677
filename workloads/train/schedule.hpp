// Which images come when: an epoch is windows of micro-batches, of which the last may be short. The
// same in every epoch, but for the order of the images, and worked out of the options alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "workloads/train/options.hpp"

namespace reprise::train {

// Images [first, first + rows) in the order of the epoch.
struct micro_batch {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  bool has_labels = true;

  bool operator==(const micro_batch&) const = default;
};

using window = std::vector<micro_batch>;
using epoch = std::vector<window>;

// Images that are validated at once, where nothing is learnt.
inline constexpr std::int64_t validated_at_once = 500;

// A last micro-batch of one image is left out: batch norm needs two.
epoch epoch_of(const train_options& options, std::int64_t images);

// Of the optimizer in window `number` of so many, counted from 0 over all epochs: from the options'
// in a line down to a tenth of it, so that the last windows settle what the first ones found.
float rate_at(const train_options& options, std::size_t number, std::size_t windows);

}  // namespace reprise::train
