// A device that wraps another and passes everything on: the base of decorators.
#pragma once

#include <memory>
#include <utility>

#include "reprise/device/api.hpp"

namespace reprise {

class forwarding_device : public device_api {
 public:
  explicit forwarding_device(std::unique_ptr<device_api> inner) : inner_{std::move(inner)} {}

  const device_traits& traits() const override { return inner_->traits(); }
  host_scheduler* threads() override { return inner_->threads(); }
  device_api& innermost() override { return inner_->innermost(); }
  memory_figures memory(place from) override { return inner_->memory(from); }
  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override {
    return inner_->allocate(kind, bytes, from);
  }
  void release(memory_kind kind, std::byte* block) noexcept override {
    inner_->release(kind, block);
  }
  void note(stream_id stream, const block_note& what) noexcept override {
    inner_->note(stream, what);
  }
  void acquired(const std::byte* word) noexcept override { inner_->acquired(word); }
  stream_id create_stream(stream_priority priority, place from) override {
    return inner_->create_stream(priority, from);
  }
  void destroy(stream_id stream) noexcept override { inner_->destroy(stream); }
  void synchronize(stream_id stream, place from) override { inner_->synchronize(stream, from); }
  event_id create_event(place from) override { return inner_->create_event(from); }
  void destroy(event_id event) noexcept override { inner_->destroy(event); }
  bool finished(event_id event, place from) override { return inner_->finished(event, from); }
  void synchronize(event_id event, place from) override { inner_->synchronize(event, from); }
  bool record_outside(stream_id stream, event_id event, place from) override {
    return inner_->record_outside(stream, event, from);
  }
  node_id submit(stream_id stream, const work& what) override {
    return inner_->submit(stream, what);
  }
  void begin_capture(stream_id stream, place from) override { inner_->begin_capture(stream, from); }
  graph_id end_capture(stream_id stream, place from) override {
    return inner_->end_capture(stream, from);
  }
  void abandon_capture(stream_id stream) noexcept override { inner_->abandon_capture(stream); }
  bool capturing(stream_id stream) const override { return inner_->capturing(stream); }
  capture_place place_in_capture(stream_id stream) const override {
    return inner_->place_in_capture(stream);
  }
  bool precedes(const capture_place& earlier, stream_id stream) const override {
    return inner_->precedes(earlier, stream);
  }
  void keep(stream_id captured, std::shared_ptr<const void> owner) override {
    inner_->keep(captured, std::move(owner));
  }
  std::vector<node_row> nodes(graph_id graph, place from) const override {
    return inner_->nodes(graph, from);
  }
  graph_id clone_without(graph_id graph, std::span<const node_id> gone, place from) override {
    return inner_->clone_without(graph, gone, from);
  }
  void destroy(graph_id graph) noexcept override { inner_->destroy(graph); }
  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override {
    return inner_->instantiate(graph, upload_on, from);
  }
  void launch(executable_id executable, stream_id stream, place from) override {
    inner_->launch(executable, stream, from);
  }
  executable_id instantiate_device_driven(graph_id graph, std::span<const node_id> driven,
                                          stream_id upload_on, place from) override {
    return inner_->instantiate_device_driven(graph, driven, upload_on, from);
  }
  device_node device_handle(executable_id executable, node_id node, place from) override {
    return inner_->device_handle(executable, node, from);
  }
  void enable(executable_id executable, node_id node, bool on, place from) override {
    inner_->enable(executable, node, on, from);
  }
  void set_parameters(executable_id executable, node_id node, const work& what) override {
    inner_->set_parameters(executable, node, what);
  }
  bool update(executable_id executable, graph_id graph, place from) override {
    return inner_->update(executable, graph, from);
  }
  void keep(executable_id executable, std::shared_ptr<const void> owner) override {
    inner_->keep(executable, std::move(owner));
  }
  void destroy(executable_id executable) noexcept override { inner_->destroy(executable); }
  void settle() noexcept override { inner_->settle(); }
  void close_finished() noexcept override { inner_->close_finished(); }
  std::size_t bytes_per_node(place from) override { return inner_->bytes_per_node(from); }

 protected:
  device_api& inner() { return *inner_; }

 private:
  std::unique_ptr<device_api> inner_;
};

}  // namespace reprise
