// whole_step: a training step as one recording: the forward of a module, its loss, the backward,
// and the update of its parameters.
//
//   nn::sgd updates{set, memory, s, {.rate = 1e-3F}};
//   whole_step step{module, loss_of(nn::squared_error{}), updates.part(), memory, s};
//   const step_result ran = step.run(s, cache, {as_tensor(x), as_tensor(target)});   // one launch
//   ran[step.loss()]                                             // a lease on this step's loss
//
// The bits are those of the same step by graphed ops, or by eager ones: gradients are written, not
// added, and every parameter that the module trains is updated. For steps that are one micro-batch
// and need nothing between backward and update (clipping, loss scaling, somebody's look at
// gradients); a module that is left alone otherwise, since its gradients count as empty before a
// step and are there after it.
//
// One thread at a time. What the module and the update refer to outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/nn/optimizers.hpp"
#include "reprise/nn/sequence.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/train/loss_op.hpp"

namespace reprise {

// What one step reads, in device memory or, with `on_host`, in memory that may be reused when the
// call returns.
struct step_batch {
  tensor_ref x;
  tensor_ref targets;
  bool on_host = false;
};

class whole_step {
 public:
  // Two words of device memory are taken from `memory`, and written in the order of `stream`.
  // Throws usage_error when the module trains a parameter that is not of the update's set, or none.
  whole_step(nn::sequence module, loss_op loss, nn::update_part update, pool& memory,
             stream_ref stream);
  whole_step(const whole_step&) = delete;
  whole_step& operator=(const whole_step&) = delete;

  // Runs in stream order, recorded and replayed as the cache sees fit. Moves the versions of what
  // it updates: a backward of an earlier forward is an error from then on. Throws what
  // replay_cache::run throws; then no update is counted.
  step_result run(site at, replay_cache& through, const step_batch& batch);

  // One f32.
  const output<float>& loss() const { return loss_; }
  const signature& describe() const { return step_.declared(); }

 private:
  signature declare();
  void body(step_scope& run) const;
  binding bind(int slot, const tensor_ref& from, bool on_host) const;

  nn::sequence module_;
  loss_op loss_op_;
  nn::update_part update_;
  erased_op erased_module_;
  std::vector<parameter*> trained_;
  std::vector<nn::updated_span> spans_;
  buffer<std::int32_t> rule_;  // write
  buffer<float> one_;          // the cotangent of the loss
  std::vector<float> words_;   // of the next update

  signature declared_{"training step"};
  input<float> x_ = declared_.in<float>("x", {any, any}, input_mode::direct);
  int targets_;
  input<float> hyper_parameters_;
  output<float> loss_ = declared_.out<float>("loss");
  step step_;
};

}  // namespace reprise
