// Training of the model, recorded and replayed, or plainly: a window of micro-batches a step.
//
// All forwards of a window come first and then all backwards, in the same order, so that what
// becomes of a second forward while a backward is owed is the policy's; gradients add up, each
// loss scaled by one over the window's micro-batches. AdamW updates, by a recorded step. One
// thread; everything it holds lies in memory of its own, on a stream of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reprise/grad/graphed_op.hpp"
#include "reprise/nn/embedding.hpp"
#include "reprise/nn/network.hpp"
#include "reprise/nn/optimizers.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/nn/softmax_cross_entropy.hpp"
#include "reprise/replay/budget.hpp"
#include "reprise/replay/cache.hpp"
#include "workloads/memory/options.hpp"
#include "workloads/memory/plan.hpp"
#include "workloads/memory/text.hpp"

namespace reprise::memory {

// What training has changed, on the host.
struct training_state {
  std::vector<float> weights;  // initial banks too; as parameter_set::values lies
  std::vector<float> first_moments;
  std::vector<float> second_moments;
  std::uint64_t updates = 0;
};

class training {
 public:
  // The options were checked, and outlive it. Without `records` every call runs eagerly, and
  // nothing of capture is ever called.
  training(device_ref device, const memory_options& options, bool records);
  training(const training&) = delete;
  training& operator=(const training&) = delete;

  // One step; waits for it. The losses of the micro-batches, of which the step's is the mean.
  std::vector<float> step(std::span<const byte_batch> window);

  training_state state() const;
  // Of its ops and its optimizer; those of samples are left at zero.
  run_counts counts();

  nn::parameter_set& parameters() { return set_; }
  const nn::parameter_set& parameters() const { return set_; }
  nn::adamw& optimizer() { return optimizer_; }
  stream_ref runs_on() const { return work_; }
  // Memory of weights with gradients and moments, and of recordings.
  std::size_t weight_bytes() const { return memory_.used(); }
  std::size_t recording_bytes() const { return budget_.held(); }

 private:
  struct owed {
    forward_result embedded;
    nn::network_call between;
    forward_result loss;
  };
  owed forward(const byte_batch& batch);
  void backward(const owed& of);

  stream work_;
  pool memory_;
  byte_budget budget_;
  nn::parameter_set set_;
  graphed_op<nn::embedding> embedding_;
  nn::network network_;
  graphed_op<nn::softmax_cross_entropy> loss_;
  nn::adamw optimizer_;
  replay_cache updates_;
  tensor<float> share_;  // of a micro-batch in its window
};

}  // namespace reprise::memory
