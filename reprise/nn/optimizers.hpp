// Optimizers over a set of parameters: sgd and adamw, whose update is a step that is recorded and
// replayed; ops/optimizers.hpp has the formulas.
//
// A parameter whose gradient is empty (parameter::has_grad) is left as it is, and so are its
// moments. Neighbours that have gradients are updated by one kernel; each set of them that occurs
// has a recording of its own. Hyper-parameters go in with every update, so that one recording
// serves a changing rate. An update moves the versions of what it updates: a backward of an earlier
// forward is an error from then on. One thread at a time; the set outlives its optimizer.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/nn/updated_spans.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/replay/step.hpp"

namespace reprise::nn {

// An update as a part of a larger step (reprise/train/whole_step.hpp), by what an optimizer is made
// of. It lives as long as the optimizer.
struct update_part {
  parameter_set* set;
  std::vector<tensor_ref> state;  // what it changes beside the values
  std::size_t word_count;
  std::function<void(std::span<float>)> words;  // the hyper-parameters of the next update
  // Updates these elements of the set; the words lie on the device.
  std::function<void(site at, view<const float> words, std::span<const updated_span> over)> enqueue;
  std::function<void()> count;  // an update was enqueued
};

struct sgd_options {
  float rate = 0.01F;
  float momentum = 0;      // 0: no velocity is kept
  float weight_decay = 0;  // added to the gradient, times the weight
};

class sgd {
 public:
  // With momentum the velocity begins as zeros, in the order of `stream`.
  sgd(parameter_set& of, pool& memory, stream_ref stream, const sgd_options& options);
  sgd(const sgd&) = delete;
  sgd& operator=(const sgd&) = delete;

  // Updates each parameter that has a gradient, in stream order; nothing where none has one. The
  // gradients stay. Throws what replay_cache::run throws.
  void update(site at, replay_cache& through);

  void set_rate(float rate) { options_.rate = rate; }
  const sgd_options& options() const { return options_; }
  view<float> velocity() const { return velocity_; }  // as parameter_set::values lies; or empty
  const signature& describe() const { return step_.declared(); }
  update_part part();

 private:
  step make();
  std::array<float, 3> words() const;
  void enqueue(site at, view<const float> words, const updated_span& span) const;

  parameter_set* set_;
  sgd_options options_;
  buffer<float> velocity_;
  signature declared_{"sgd"};
  input<float> words_ = declared_.in<float>("hyper-parameters", {3});
  step step_;
};

struct adamw_options {
  float rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float eps = 1e-8F;
  float weight_decay = 0.01F;
};

class adamw {
 public:
  // Both moments begin as zeros, in the order of `stream`. Throws usage_error, and takes no
  // memory, unless both betas are at least 0 and less than 1, and eps is over 0.
  adamw(parameter_set& of, pool& memory, stream_ref stream, const adamw_options& options);
  adamw(const adamw&) = delete;
  adamw& operator=(const adamw&) = delete;

  // As sgd::update; counts one update of the set, also for parameters that it leaves out.
  void update(site at, replay_cache& through);

  void set_rate(float rate) { options_.rate = rate; }
  const adamw_options& options() const { return options_; }
  // To save and restore, with the moments: how many updates there were.
  std::uint64_t updates() const { return updates_; }
  void set_updates(std::uint64_t count) { updates_ = count; }
  // As parameter_set::values lies.
  view<float> first_moments() const { return moments_.all().subview(0, set_->elements()); }
  view<float> second_moments() const {
    return moments_.all().subview(set_->elements(), set_->elements());
  }
  const signature& describe() const { return step_.declared(); }
  update_part part();

 private:
  step make();
  std::array<float, 7> words() const;
  void enqueue(site at, view<const float> words, const updated_span& span) const;

  parameter_set* set_;
  adamw_options options_;
  std::uint64_t updates_ = 0;
  buffer<float> moments_;
  signature declared_{"adamw"};
  input<float> words_ = declared_.in<float>("hyper-parameters", {7});
  step step_;
};

}  // namespace reprise::nn
