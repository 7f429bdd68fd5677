// A module of layers as a part runs it: by an op that never records, and, while the part records,
// by one that does. What graphed_network and the groups of graphed_heads share.
//
// One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "reprise/nn/sequence.hpp"
#include "reprise/train/certificate.hpp"
#include "reprise/train/part.hpp"

namespace reprise {

class recorded_module {
 public:
  // The budget outlives it, and so does what the module refers to.
  recorded_module(nn::sequence module, byte_budget& budget, const part_options& options);

  const nn::sequence& module() const { return module_; }
  const std::string& name() const { return module_.describe().name(); }

  // Recordings may come. Calls no device.
  void open();
  // Nothing is recorded from here on. Returns the op that has recorded, to be drained and dropped;
  // null: there is none. Calls no device.
  std::shared_ptr<graphed> let_go();
  // What was let go is done with: its counts stay.
  void dropped(const graphed& gone);
  bool has_recorded() const { return has_recorded_; }

  // What its recordings rest on has changed, in words; empty: nothing has. Before the first
  // recording it takes what it finds.
  std::string drifted(device_ref on);

  // In the precision of the options. `records`: by the op that records, where there is one.
  part_call forward(site at, const operand& x, bool records);
  // Of a call of this module; empty unless the gradient of x is wanted. A call whose recording was
  // let go runs it eagerly.
  tensor<float> backward(site at, const part_call& call, const tensor<float>& dy, bool wants_x);
  tensor<float> infer(site at, const operand& x);
  // Its frame owes no backward any more.
  void forget_pending();

  void observe(const std::shared_ptr<mark_observer>& observer);
  void stop_observing();
  bool is_observed() const { return eager_->is_observed(); }

  // Of all its ops so far.
  grad_counts counts() const;
  std::uint64_t replays_inside_windows() const { return replays_inside_windows_; }

 private:
  grad_result run_backward(site at, const part_call& call, operands cotangents, const wanted& what);
  bool has_gradients() const;

  nn::sequence module_;
  nn::sequence inference_;
  byte_budget& budget_;
  part_options options_;
  std::uint64_t id_;  // of its calls
  std::vector<std::shared_ptr<mark_observer>> observers_;
  std::shared_ptr<graphed> eager_;
  std::shared_ptr<graphed> inferring_;  // null: inference runs no layer
  std::shared_ptr<graphed> recording_;  // null: nothing is recorded
  bool has_recorded_ = false;
  std::weak_ptr<forward_call> pending_;  // that the recording ran last
  certificate certified_;
  certificate now_;
  grad_counts gone_;  // of ops that were let go
  std::uint64_t replays_inside_windows_ = 0;
};

}  // namespace reprise
