// weight_average: an average of the weights of a set of parameters over the updates of a training,
// later ones weighing more; ops/moving_average.hpp has the formula. It begins as a copy of them.
// Moving it is a step that is recorded and replayed.
//
// The decay goes in with every update, so that one recording serves a changing one. Updates of the
// average move no versions: nobody but a copy reads it. One thread at a time; the set outlives it.
#pragma once

#include "reprise/device/memory.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/replay/step.hpp"

namespace reprise::nn {

class weight_average {
 public:
  // Copies the weights, in the order of `stream`.
  weight_average(const parameter_set& of, pool& memory, stream_ref stream);
  weight_average(const weight_average&) = delete;
  weight_average& operator=(const weight_average&) = delete;

  // average = decay * average + (1 - decay) * weight for the whole set, in stream order. Throws
  // usage_error, and changes nothing, unless 0 <= decay <= 1; and what replay_cache::run throws.
  void update(site at, replay_cache& through, float decay);

  // As parameter_set::values lies: to copy into a set of the same parameters, to compare, to save
  // and to restore.
  view<float> values() const { return average_; }
  const signature& describe() const { return step_.declared(); }

 private:
  step make();

  const parameter_set* set_;
  buffer<float> average_;
  signature declared_{"weight_average"};
  input<float> words_ = declared_.in<float>("decay", {1});
  step step_;
};

}  // namespace reprise::nn
