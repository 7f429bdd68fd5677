#include "reprise/cuda/capture.hpp"

#include <algorithm>
#include <utility>

#include "reprise/cuda/core.hpp"

namespace reprise::cuda {

std::vector<cudaGraphNode_t> capture_state::fresh_at(const stream_record& stream) const {
  std::vector<cudaGraphNode_t> tail;
  std::vector<cudaGraphNode_t> fresh;
  core& shared = body_->shared;
  shared.card.check(tail_of(stream.native, tail), "submit", stream.made_at);
  shared.card.check(fresh_nodes(known_, tail, fresh), "submit", stream.made_at);
  return fresh;
}

void capture_state::pass_over_others(const stream_record& stream) {
  if (foreign_ == 0) return;
  const std::lock_guard lock{guard_};
  const std::vector<cudaGraphNode_t> others = fresh_at(stream);
  known_.insert(others.begin(), others.end());
}

std::string_view capture_state::forbidden_at(const stream_record& stream) {
  const std::lock_guard lock{guard_};
  for (const cudaGraphNode_t node : fresh_at(stream)) {
    cudaGraphNodeType type{};
    body_->shared.card.check(cudaGraphNodeGetType(node, &type), "submit", stream.made_at);
    switch (type) {
      case cudaGraphNodeTypeMemAlloc: return "memory allocation";
      case cudaGraphNodeTypeMemFree: return "memory release";
      case cudaGraphNodeTypeConditional: return "conditional";
      default: break;
    }
  }
  return {};
}

node_id capture_state::add_work(const stream_record& stream, std::string_view label) {
  const std::lock_guard lock{guard_};
  graph_op op{next_node(), std::string{label}, fresh_at(stream)};
  known_.insert(op.nodes.begin(), op.nodes.end());
  const node_id id = op.id;
  {
    const std::lock_guard ops{body_->guard};
    body_->ops.push_back(std::move(op));
  }
  const std::size_t i = index_of(stream);
  branches_[i].last_work = ++branches_[i].tail[i];
  return id;
}

capture_place capture_state::place_of(const stream_record& stream) {
  const std::lock_guard lock{guard_};
  const std::size_t i = index_of(stream);
  if (foreign_ != 0) ++branches_[i].tail[i];
  return {number_, i, branches_[i].tail[i]};
}

bool capture_state::precedes(const capture_place& earlier, const stream_record& stream) const {
  if (earlier.capture != number_) return false;
  const std::lock_guard lock{guard_};
  const clock& before = branches_[index_of(stream)].tail;
  return earlier.steps == 0 ||
         (earlier.branch < before.size() && before[earlier.branch] >= earlier.steps);
}

void capture_state::record(const event_record& event, const stream_record& stream) {
  const std::lock_guard lock{guard_};
  marks_[&event] = branches_[index_of(stream)].tail;
}

void capture_state::join(stream_record& stream) {
  const std::lock_guard lock{guard_};
  const std::size_t i = index_of(stream);
  if (i == branches_.size()) branches_.push_back({&stream, clock(i + 1, 0), 0});
  stream.capture.store(this, std::memory_order_release);
}

void capture_state::wait(const event_record& event, stream_record& stream) {
  const std::lock_guard lock{guard_};
  std::size_t i = index_of(stream);
  if (i == branches_.size()) {
    branches_.push_back({&stream, clock(i + 1, 0), 0});
    stream.capture.store(this, std::memory_order_release);
  }
  merge(branches_[i].tail, marks_[&event]);
  ++branches_[i].tail[i];
}

host_function& capture_state::keep(std::string_view label, const std::function<void()>& function) {
  const std::lock_guard lock{guard_};
  return body_->functions.emplace_back(label, function);
}

void capture_state::keep(std::shared_ptr<const void> owner) {
  const std::lock_guard lock{guard_};
  body_->kept.keep(std::move(owner));
}

void capture_state::forget(const stream_record& stream) noexcept {
  const std::lock_guard lock{guard_};
  for (branch& b : branches_) {
    if (b.stream == &stream) b.stream = nullptr;
  }
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
    if (seen < branches_[i].last_work) left.push_back(branches_[i].stream);
  }
  return left;
}

bool capture_state::of_two_priorities() const {
  const std::lock_guard lock{guard_};
  return std::ranges::any_of(branches_, [&](const branch& one) {
    return one.stream != nullptr && branches_.front().stream != nullptr &&
           one.stream->goes_ahead != branches_.front().stream->goes_ahead;
  });
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
  for (const branch& b : branches_) {
    if (b.stream != nullptr) b.stream->capture.store(nullptr, std::memory_order_release);
  }
}

std::size_t capture_state::index_of(const stream_record& stream) const {
  const auto found = std::ranges::find(branches_, &stream, &branch::stream);
  return static_cast<std::size_t>(found - branches_.begin());
}

void capture_state::merge(clock& into, const clock& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (std::size_t i = 0; i != from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

capture_state& capture_registry::add(std::unique_ptr<capture_state> fresh, stream_record& origin) {
  capture_state& opened = *fresh;
  const std::lock_guard lock{guard_};
  open_.emplace(opened.number(), std::move(fresh));
  if (opened.foreign() == 0) open_in_process.fetch_add(1, std::memory_order_acq_rel);
  origin.capture.store(&opened, std::memory_order_release);
  return opened;
}

capture_state& capture_registry::open(core& shared, stream_record& origin) {
  return add(std::make_unique<capture_state>(origin, first_capture + next_capture(),
                                             std::make_shared<graph_body>(shared)),
             origin);
}

capture_state& capture_registry::open_beside(stream_record& origin,
                                             std::shared_ptr<graph_body> body,
                                             unsigned long long number) {
  return add(std::make_unique<capture_state>(origin, first_capture + next_capture(),
                                             std::move(body), number),
             origin);
}

capture_state* capture_registry::find_beside(unsigned long long number) {
  const std::lock_guard lock{guard_};
  for (const auto& [own, capture] : open_) {
    if (capture->foreign() == number) return capture.get();
  }
  return nullptr;
}

void capture_registry::forget(const stream_record& stream) noexcept {
  const std::lock_guard lock{guard_};
  for (const auto& [own, capture] : open_) {
    if (capture->foreign() != 0) capture->forget(stream);
  }
}

std::unique_ptr<capture_state> capture_registry::close(const capture_state& ended) noexcept {
  const std::lock_guard lock{guard_};
  const auto found = open_.find(ended.number());
  std::unique_ptr<capture_state> closed = std::move(found->second);
  open_.erase(found);
  closed->release_streams();
  if (closed->foreign() == 0) open_in_process.fetch_sub(1, std::memory_order_acq_rel);
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
