// loss_scaler: the scale of a loss that keeps small gradients above what a narrow type rounds to
// zero, found as training goes (Micikevicius et al., "Mixed Precision Training", 2018, section
// 3.2): it doubles after so many updates without an overflow, and halves at each overflow.
//
// The state is the host's. The scale comes to a backward as the cotangent of the loss, a word in
// device memory that is written in stream order, and only when it changes: a backward that was
// enqueued before has the scale of then. One thread and one stream at a time.
//
//   for each micro-batch of the window:
//     loss.backward(s, call.ticket, {gradient_of(op.loss, scaler.cotangent(s, 1.0F / n))});
//   … gradient_finish by scaler.scale(); then update, or not …
//   scaler.update(found.finite);
#pragma once

#include "reprise/device/memory.hpp"

namespace reprise::nn {

struct loss_scale_options {
  float scale = 65536;    // at first
  int interval = 2000;    // good updates in a row, after which it doubles
  float least = 1;        // what it does not go below,
  float most = 16777216;  // and above: 2^24
};

// To save and restore.
struct loss_scale {
  float scale = 65536;
  int good_updates = 0;  // in a row, since it has changed

  bool operator==(const loss_scale&) const = default;
};

class loss_scaler {
 public:
  // Takes memory for the word, whose stream this is. Throws usage_error, and takes none, unless
  // 0 < least <= scale <= most, all finite, and the interval is 1 at least.
  loss_scaler(pool& memory, stream_ref stream, const loss_scale_options& options = {});
  loss_scaler(const loss_scaler&) = delete;
  loss_scaler& operator=(const loss_scaler&) = delete;

  float scale() const { return now_.scale; }
  // Behind each window: whether its gradients were finite.
  void update(bool finite);

  // [1]: the scale times a micro-batch's share of its window, written here when it is another than
  // before. Throws usage_error on another stream, inside a capture, which would repeat it, and for
  // a share that is not over 0.
  view<const float> cotangent(site at, float share = 1);

  const loss_scale& state() const { return now_; }
  // Throws usage_error, and changes nothing, for a scale outside of the bounds, and a count that an
  // interval does not have.
  void restore(const loss_scale& state);

 private:
  loss_scale_options options_;
  loss_scale now_;
  stream_ref stream_;
  buffer<float> word_;
  float written_ = 0;  // in the word; 0: nothing yet
};

}  // namespace reprise::nn
