// Keeps uses of one thing in order when they come from several streams: a use on another stream
// waits for the last one. No event is recorded while the stream stays the same.
#pragma once

#include <optional>
#include <source_location>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/device/device.hpp"

namespace reprise {

class stream_order {
 public:
  // Work enqueued on `now` from here on comes after all uses before. Throws usage_error, and
  // changes nothing, where the last stream is being captured: its place in the order is not known.
  void enter(stream_ref now, std::source_location place) {
    if (last_ && !(*last_ == now)) {
      landmark("step: crossed streams");
      if (!passed_) passed_.emplace(now.device(), place);
      bool ordered = true;
      if (!is_live()) {
        ordered = now.device().state().order_after(last_->id(), now, place);  // gone, or going
      } else if ((ordered = passed_->record_outside(last_->id(), place))) {
        passed_->wait(now, place);
      }
      if (!ordered) {
        throw usage_error{
            "the stream of the last run is being captured, or destroyed by another thread; run the "
            "step on another stream when that is over"};
      }
    }
    last_ = now;
    closing_ = false;
  }

  stream_id last() const { return last_ ? last_->id() : stream_id::none; }

  // Of the last use; none where it is gone.
  std::optional<stream_ref> live() const { return last_ && is_live() ? last_ : std::nullopt; }

  // Marks the end of the last use, for `finished`. While the stream is being captured that has to
  // wait, and `finished` tries again.
  void close(std::source_location place) {
    if (!last_ || !is_live()) return;
    if (!passed_) passed_.emplace(last_->device(), place);
    closed_ = passed_->record_outside(last_->id(), place);
    closing_ = !closed_;
  }
  bool finished(std::source_location place) {
    if (closing_) close(place);
    if (closing_ && is_live()) return false;
    return !closed_ || passed_->finished(place);
  }

  // The host waits until the last use is done: that one alone, once closed.
  void synchronize(std::source_location place) const {
    if (closed_) {
      passed_->synchronize(place);
    } else if (last_ && is_live()) {
      last_->synchronize(place);
    }
  }

 private:
  // A stream that was destroyed has waited for its work.
  bool is_live() const { return last_->device().state().is_live(last_->id()); }

  std::optional<stream_ref> last_;
  std::optional<event> passed_;
  bool closed_ = false;
  bool closing_ = false;
};

}  // namespace reprise
