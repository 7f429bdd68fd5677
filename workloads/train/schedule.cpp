#include "workloads/train/schedule.hpp"

#include <algorithm>

namespace reprise::train {

epoch epoch_of(const train_options& o, std::int64_t images) {
  epoch all;
  std::int64_t number = 0;
  for (std::int64_t first = 0; images - first >= 2; first += o.batch, ++number) {
    if (number % o.accumulate == 0) all.emplace_back();
    const bool is_dropped = o.unlabelled_every != 0 && (number + 1) % o.unlabelled_every == 0;
    all.back().push_back({first, std::min(o.batch, images - first), !is_dropped});
  }
  return all;
}

float rate_at(const train_options& o, std::size_t number, std::size_t windows) {
  return o.learning_rate * (1 - 0.9F * static_cast<float>(number) / static_cast<float>(windows));
}

}  // namespace reprise::train
