#include "bench/tap/step_timer.hpp"

#include "reprise/base/clock.hpp"

namespace reprise::bench {

step_timer::step_timer(stream_ref stream, void* native_stream) : stream_{stream} {
  if (native_stream != nullptr) raw_ = std::make_unique<raw_timer>(native_stream);
}

void step_timer::start() {
  if (raw_) {
    raw_->start();
  } else {
    stream_.synchronize();
    began_ = now_us();
  }
}

double step_timer::stop() {
  if (raw_) raw_->stop();
  stream_.synchronize();
  return raw_ ? raw_->us() : now_us() - began_;
}

}  // namespace reprise::bench
