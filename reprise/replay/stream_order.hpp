// Keeps uses of one thing in order when they come from several streams: a use on another stream
// waits for the last one. No event is recorded while the stream stays the same.
#pragma once

#include <optional>
#include <source_location>

#include "reprise/base/fault_points.hpp"
#include "reprise/device/device.hpp"

namespace reprise {

class stream_order {
 public:
  // Work enqueued on `now` from here on comes after all uses before.
  void enter(stream_ref now, std::source_location place) {
    if (last_ && !(*last_ == now) && is_live()) {
      landmark("step: crossed streams");
      if (!passed_) passed_.emplace(now.device(), place);
      passed_->record(*last_, place);
      passed_->wait(now, place);
    }
    last_ = now;
  }

  // Marks the end of the last use, for `finished`.
  void close(std::source_location place) {
    if (!last_ || !is_live()) return;
    if (!passed_) passed_.emplace(last_->device(), place);
    passed_->record(*last_, place);
    closed_ = true;
  }
  bool finished(std::source_location place) const { return !closed_ || passed_->finished(place); }

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
};

}  // namespace reprise
