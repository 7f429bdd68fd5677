// gradient_finish: what is done to the gradients of a set of parameters once all micro-batches of a
// window are added up, and before an update: the scale of the loss is divided out, and their global
// norm is clipped. A step that is recorded and replayed; ops/gradient_norm.hpp has the formulas.
//
// Of the parameters that have gradients, as an optimizer's update is; each set of them that occurs
// has a recording of its own. Scale and bound go in with every run, so that one recording serves
// changing ones. Gradients of which one is not finite are left as they came: what the facts say
// decides whether the caller updates by them. One thread at a time; the set outlives it.
//
//   finish.run(s, cache, scaler.scale(), 1.0F);
//   const gradient_facts found = finish.read(s);
//   if (found.finite) optimizer.update(s, cache);
//   scaler.update(found.finite);
#pragma once

#include "reprise/device/memory.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/replay/step.hpp"

namespace reprise::nn {

struct gradient_facts {
  float norm = 0;      // of all gradients together, the scale divided out, before clipping
  bool finite = true;  // each of their elements, the scale divided out
};

class gradient_finish {
 public:
  // Takes memory for the facts, in the order of `stream`; at first there are no gradients, whose
  // norm is 0.
  gradient_finish(parameter_set& of, pool& memory, stream_ref stream);
  gradient_finish(const gradient_finish&) = delete;
  gradient_finish& operator=(const gradient_finish&) = delete;

  // In stream order: divides by `scale`, then clips the norm at `most`; 0: it is not clipped.
  // Throws usage_error, and changes nothing, unless the scale is finite and over 0, and the bound
  // is finite and 0 at least; and what replay_cache::run throws.
  void run(site at, replay_cache& through, float scale = 1, float most = 0);

  // What the last run has found; waits for the stream.
  gradient_facts read(stream_ref stream) const;
  // In device memory: the norm, and 1 or 0, whether all are finite.
  view<const float> facts() const { return facts_.all().subview(0, 2); }
  const signature& describe() const { return step_.declared(); }

 private:
  step make();

  parameter_set* set_;
  buffer<float> facts_;  // and the factor of clipping behind those
  signature declared_{"gradient_finish"};
  input<float> words_ = declared_.in<float>("scale and bound", {2});
  step step_;
};

}  // namespace reprise::nn
