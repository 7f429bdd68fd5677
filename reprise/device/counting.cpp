#include "reprise/device/counting.hpp"

#include <utility>

#include "reprise/device/forwarding.hpp"

namespace reprise {

namespace {

class counting_device final : public forwarding_device {
 public:
  counting_device(std::unique_ptr<device_api> inner, std::shared_ptr<call_counts> into)
      : forwarding_device{std::move(inner)}, counts_{std::move(into)} {}

  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override {
    counts_->add(seam_call::allocate);
    return inner().allocate(kind, bytes, from);
  }
  void release(memory_kind kind, std::byte* block) noexcept override {
    counts_->add(seam_call::release);
    inner().release(kind, block);
  }
  stream_id create_stream(stream_priority priority, place from) override {
    counts_->add(seam_call::create_stream);
    return inner().create_stream(priority, from);
  }
  event_id create_event(place from) override {
    counts_->add(seam_call::create_event);
    return inner().create_event(from);
  }
  void synchronize(stream_id stream, place from) override {
    counts_->add(seam_call::synchronize);
    inner().synchronize(stream, from);
  }
  void synchronize(event_id event, place from) override {
    counts_->add(seam_call::synchronize);
    inner().synchronize(event, from);
  }
  bool finished(event_id event, place from) override {
    counts_->add(seam_call::query);
    return inner().finished(event, from);
  }
  bool record_outside(stream_id stream, event_id event, place from) override {
    const bool recorded = inner().record_outside(stream, event, from);
    if (recorded) counts_->add(seam_call::event_record);
    return recorded;
  }
  node_id submit(stream_id stream, const work& what) override {
    counts_->add(call_of(what.kind));
    return inner().submit(stream, what);
  }
  void begin_capture(stream_id stream, place from) override {
    counts_->add(seam_call::capture);
    inner().begin_capture(stream, from);
  }
  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override {
    counts_->add(seam_call::instantiate);
    return inner().instantiate(graph, upload_on, from);
  }
  graph_id clone_without(graph_id graph, std::span<const node_id> gone, place from) override {
    counts_->add(seam_call::clone);
    return inner().clone_without(graph, gone, from);
  }
  executable_id instantiate_device_driven(graph_id graph, std::span<const node_id> driven,
                                          stream_id upload_on, place from) override {
    counts_->add(seam_call::instantiate);
    return inner().instantiate_device_driven(graph, driven, upload_on, from);
  }
  void launch(executable_id executable, stream_id stream, place from) override {
    counts_->add(seam_call::launch);
    inner().launch(executable, stream, from);
  }
  void enable(executable_id executable, node_id node, bool on, place from) override {
    counts_->add(seam_call::enable);
    inner().enable(executable, node, on, from);
  }
  void set_parameters(executable_id executable, node_id node, const work& what) override {
    counts_->add(seam_call::set_parameters);
    inner().set_parameters(executable, node, what);
  }
  bool update(executable_id executable, graph_id graph, place from) override {
    counts_->add(seam_call::update);
    return inner().update(executable, graph, from);
  }

 private:
  std::shared_ptr<call_counts> counts_;
};

}  // namespace

std::unique_ptr<device_api> counting(std::unique_ptr<device_api> inner,
                                     std::shared_ptr<call_counts> into) {
  return std::make_unique<counting_device>(std::move(inner), std::move(into));
}

}  // namespace reprise
