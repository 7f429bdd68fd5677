// Training of the model, its step in parts that are recorded and replayed, or plainly: windows of
// micro-batches.
//
// A micro-batch goes through the trunk, the groups of heads and the loss, and back: what both
// groups want of the trunk's output is added up there. Gradients of a window add up, each loss
// scaled by one over the window's micro-batches and by the loss scale; then they are divided by
// that scale, clipped, and looked at. Where all are finite, AdamW updates the weights and their
// average follows; where not, the window is skipped and the scale goes down.
//
// A micro-batch without labels has no class to learn: that group's forward runs eagerly, and its
// term of the loss is left out.
//
// One thread; everything it holds lies in memory of its own, on a stream of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reprise/nn/gradient_finish.hpp"
#include "reprise/nn/loss_scaler.hpp"
#include "reprise/nn/optimizers.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/nn/weight_average.hpp"
#include "reprise/replay/budget.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/train/graphed_heads.hpp"
#include "reprise/train/graphed_loss.hpp"
#include "reprise/train/graphed_network.hpp"
#include "reprise/train/training_run.hpp"
#include "workloads/train/data.hpp"
#include "workloads/train/model.hpp"
#include "workloads/train/options.hpp"
#include "workloads/train/picture.hpp"
#include "workloads/train/plan.hpp"

namespace reprise::train {

// Of one micro-batch. Without labels there is no loss of the class: 0.
struct batch_loss {
  float whole = 0;
  float of_class = 0;
  float of_mask = 0;
};

struct window_result {
  std::vector<batch_loss> losses;  // by micro-batch; the window's is the mean
  float norm = 0;                  // of all gradients, before they were clipped
  float scale = 0;                 // that the losses were multiplied with
  bool is_applied = false;         // false: a gradient was not finite, and nothing was updated

  float loss() const;
};

// What the averaged weights make of some images.
struct evaluation {
  double accuracy = 0;       // of classes, from 0 to 1
  double mask_accuracy = 0;  // of pixels
  float loss = 0;            // the mean over images
};

// What training has changed, on the host.
struct training_state {
  std::vector<float> weights;  // as parameter_set::values lies, and so the next three
  std::vector<float> first_moments;
  std::vector<float> second_moments;
  std::vector<float> average;
  std::uint64_t updates = 0;       // of the optimizer
  std::vector<float> statistics;   // of both batch norms
  std::uint64_t drawn = 0;         // random numbers of dropout
  float scale = 0;                 // of the loss
  std::uint64_t good_windows = 0;  // since it last changed
};

class training {
 public:
  // The options were checked, and outlive it. Without `records` every call runs eagerly, and
  // nothing of capture is ever called.
  training(device_ref device, const train_options& options, bool records);
  training(const training&) = delete;
  training& operator=(const training&) = delete;

  // Around all steps of a run. A training that goes without `end` ends as one that failed.
  void begin() { run_.start(work_); }
  void end() { run_.end(); }

  // One window, whose update has this rate. Waits until its gradients are formed.
  window_result step(std::span<const image_batch> batches, float rate);

  // By the averaged weights and the running statistics, eagerly; leaves everything as it was.
  evaluation evaluate(const image_set& images);
  // Of the first images.
  std::vector<prediction> predict(const image_set& images, std::int64_t count);

  training_state state() const;
  run_counts counts() const;

  nn::parameter_set& parameters() { return set_; }
  const nn::parameter_set& parameters() const { return set_; }
  nn::adamw& optimizer() { return optimizer_; }
  nn::weight_average& average() { return average_; }
  norm_statistics& statistics() { return statistics_; }
  philox_counter& draws() { return draws_; }
  stream_ref runs_on() const { return work_; }
  // Memory of weights with gradients, moments and average, and of recordings.
  std::size_t weight_bytes() const { return memory_.used(); }
  std::size_t recording_bytes() const { return budget_.held(); }

 private:
  // On the device.
  struct uploaded {
    tensor<float> pixels;
    tensor<float> masks;
    tensor<std::int32_t> labels;  // empty: nobody says
  };
  struct said {
    tensor<float> of_class;  // logits
    tensor<float> of_mask;
  };

  // In stream order; the batch stays as it is until that is done.
  uploaded upload(const image_batch& batch);
  std::vector<operand> targets_of(const uploaded& batch) const;
  graphed_loss::result forward_and_backward(const uploaded& batch, view<const float> scale);
  said say(const uploaded& batch);
  void put_weights(view<const float> from);
  void with_averaged_weights(const std::function<void()>& body);

  const train_options& options_;
  stream work_;
  pool memory_;
  byte_budget budget_;
  nn::parameter_set set_;
  norm_statistics statistics_;
  philox_counter draws_;
  graphed_network trunk_;
  graphed_heads heads_;
  graphed_loss loss_;
  training_run run_;
  nn::loss_scaler scaler_;
  nn::gradient_finish finish_;
  nn::adamw optimizer_;
  nn::weight_average average_;
  replay_cache updates_;
  buffer<float> aside_;  // the weights, while their average is in their place
};

}  // namespace reprise::train
