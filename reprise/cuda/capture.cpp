#include "reprise/cuda/capture.hpp"

#include <algorithm>
#include <utility>

namespace reprise::cuda {

void capture_state::add_work(const stream_record& stream) {
  const std::lock_guard lock{guard_};
  const std::size_t i = index_of(stream);
  ++branches_[i].tail[i];
}

void capture_state::record(const event_record& event, const stream_record& stream) {
  const std::lock_guard lock{guard_};
  marks_[&event] = branches_[index_of(stream)].tail;
}

void capture_state::wait(const event_record& event, stream_record& stream) {
  const std::lock_guard lock{guard_};
  std::size_t i = index_of(stream);
  if (i == branches_.size()) {
    branches_.push_back({&stream, clock(i + 1, 0)});
    stream.capture.store(this, std::memory_order_release);
  }
  merge(branches_[i].tail, marks_[&event]);
}

host_function& capture_state::keep(std::string_view label, const std::function<void()>& function) {
  const std::lock_guard lock{guard_};
  return functions_->emplace_back(label, function);
}

void capture_state::fail(std::exception_ptr cause) noexcept {
  const std::lock_guard lock{guard_};
  if (cause_ == nullptr) cause_ = std::move(cause);
}

void capture_state::suspect(std::exception_ptr cause) noexcept {
  const std::lock_guard lock{guard_};
  if (suspicion_ == nullptr) suspicion_ = std::move(cause);
}

std::exception_ptr capture_state::cause() const {
  const std::lock_guard lock{guard_};
  return cause_;
}

std::exception_ptr capture_state::suspicion() const {
  const std::lock_guard lock{guard_};
  return suspicion_;
}

std::vector<const stream_record*> capture_state::unjoined() const {
  const std::lock_guard lock{guard_};
  const clock& known = branches_.front().tail;
  std::vector<const stream_record*> left;
  for (std::size_t i = 1; i != branches_.size(); ++i) {
    const std::size_t seen = i < known.size() ? known[i] : 0;
    if (seen < branches_[i].tail[i]) left.push_back(branches_[i].stream);
  }
  return left;
}

std::string capture_state::joined_text() const {
  const std::lock_guard lock{guard_};
  std::string text;
  for (std::size_t i = 1; i != branches_.size(); ++i) {
    text += (text.empty() ? "" : ", ") + branches_[i].stream->text();
  }
  return text;
}

void capture_state::release_streams() noexcept {
  const std::lock_guard lock{guard_};
  for (const branch& b : branches_) b.stream->capture.store(nullptr, std::memory_order_release);
}

std::size_t capture_state::index_of(const stream_record& stream) const {
  const auto found = std::ranges::find(branches_, &stream, &branch::stream);
  return static_cast<std::size_t>(found - branches_.begin());
}

void capture_state::merge(clock& into, const clock& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (std::size_t i = 0; i != from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

capture_state& capture_registry::open(stream_record& origin) {
  const std::lock_guard lock{guard_};
  auto fresh = std::make_unique<capture_state>(origin, next_);
  capture_state& opened = *fresh;
  open_.emplace(next_, std::move(fresh));
  ++next_;
  open_in_process.fetch_add(1, std::memory_order_acq_rel);
  origin.capture.store(&opened, std::memory_order_release);
  return opened;
}

std::unique_ptr<capture_state> capture_registry::close(const capture_state& ended) noexcept {
  const std::lock_guard lock{guard_};
  const auto found = open_.find(ended.number());
  std::unique_ptr<capture_state> closed = std::move(found->second);
  open_.erase(found);
  closed->release_streams();
  open_in_process.fetch_sub(1, std::memory_order_acq_rel);
  return closed;
}

void capture_registry::suspect(const std::exception_ptr& cause) noexcept {
  const std::lock_guard lock{guard_};
  for (const auto& [number, capture] : open_) {
    if (capture->began_here()) capture->suspect(cause);
  }
}

void refuse(capture_state& capture, const call_place& where, std::string_view why) {
  const capture_error refusal{where, why};
  capture.fail(std::make_exception_ptr(refusal));
  throw refusal;
}

std::string text_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

}  // namespace reprise::cuda
