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
  memory_figures memory(place from) override { return inner_->memory(from); }
  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override {
    return inner_->allocate(kind, bytes, from);
  }
  void release(memory_kind kind, std::byte* block) noexcept override {
    inner_->release(kind, block);
  }
  stream_id create_stream(place from) override { return inner_->create_stream(from); }
  void destroy(stream_id stream) noexcept override { inner_->destroy(stream); }
  void synchronize(stream_id stream, place from) override { inner_->synchronize(stream, from); }
  event_id create_event(place from) override { return inner_->create_event(from); }
  void destroy(event_id event) noexcept override { inner_->destroy(event); }
  bool finished(event_id event, place from) override { return inner_->finished(event, from); }
  void synchronize(event_id event, place from) override { inner_->synchronize(event, from); }
  void submit(stream_id stream, const work& what) override { inner_->submit(stream, what); }
  void begin_capture(stream_id stream, place from) override { inner_->begin_capture(stream, from); }
  graph_id end_capture(stream_id stream, place from) override {
    return inner_->end_capture(stream, from);
  }
  void abandon_capture(stream_id stream) noexcept override { inner_->abandon_capture(stream); }
  bool capturing(stream_id stream) const override { return inner_->capturing(stream); }
  std::size_t node_count(graph_id graph) const override { return inner_->node_count(graph); }
  void destroy(graph_id graph) noexcept override { inner_->destroy(graph); }
  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override {
    return inner_->instantiate(graph, upload_on, from);
  }
  void launch(executable_id executable, stream_id stream, place from) override {
    inner_->launch(executable, stream, from);
  }
  void destroy(executable_id executable) noexcept override { inner_->destroy(executable); }

 protected:
  device_api& inner() { return *inner_; }

 private:
  std::unique_ptr<device_api> inner_;
};

}  // namespace reprise
