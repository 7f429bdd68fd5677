#include "reprise/sim/capture.hpp"

#include <algorithm>
#include <utility>

namespace reprise::sim {

capture::capture(stream_id origin, std::uint64_t number)
    : origin_{origin}, number_{number}, streams_{origin} {}

void capture::add(stream_id stream, const work& what) {
  nodes_.push_back(std::make_shared<const stored_work>(what));
  ++tails_[stream][stream];
}

void capture::record(event_id event, stream_id stream) {
  marks_[event] = tails_[stream];
}

void capture::wait(event_id event, stream_id stream) {
  streams_.insert(stream);
  merge(tails_[stream], marks_.at(event));
}

void capture::invalidate(std::string cause) {
  if (cause_.empty()) cause_ = std::move(cause);
}

stream_id capture::unjoined() const {
  const auto own = tails_.find(origin_);
  for (const auto& [stream, tail] : tails_) {
    const auto done = tail.find(stream);
    if (stream == origin_ || done == tail.end()) continue;
    const bool joined = own != tails_.end() && own->second.contains(stream) &&
                        own->second.at(stream) >= done->second;
    if (!joined) return stream;
  }
  return stream_id::none;
}

void capture::merge(clock& into, const clock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

}  // namespace reprise::sim
