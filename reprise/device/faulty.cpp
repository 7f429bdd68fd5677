#include "reprise/device/faulty.hpp"

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/forwarding.hpp"

namespace reprise {

namespace {

class faulty_device final : public forwarding_device {
 public:
  faulty_device(std::unique_ptr<device_api> inner, std::shared_ptr<fault_plan> plan)
      : forwarding_device{std::move(inner)}, plan_{std::move(plan)} {}

  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override {
    if (plan_->strikes(seam_call::allocate)) {
      throw out_of_memory{{"allocate (injected fault)", traits().name, from}, bytes, 0};
    }
    return inner().allocate(kind, bytes, from);
  }
  stream_id create_stream(stream_priority priority, place from) override {
    strike<device_error>(seam_call::create_stream, "create_stream", from);
    return inner().create_stream(priority, from);
  }
  event_id create_event(place from) override {
    strike<device_error>(seam_call::create_event, "create_event", from);
    return inner().create_event(from);
  }
  void synchronize(stream_id stream, place from) override {
    strike<device_error>(seam_call::synchronize, "synchronize", from);
    inner().synchronize(stream, from);
  }
  void synchronize(event_id event, place from) override {
    strike<device_error>(seam_call::synchronize, "synchronize", from);
    inner().synchronize(event, from);
  }
  bool finished(event_id event, place from) override {
    strike<device_error>(seam_call::query, "query", from);
    return inner().finished(event, from);
  }
  bool record_outside(stream_id stream, event_id event, place from) override {
    strike<device_error>(seam_call::event_record, name_of(work_kind::event_record), from);
    return inner().record_outside(stream, event, from);
  }
  node_id submit(stream_id stream, const work& what) override {
    strike<device_error>(call_of(what.kind), name_of(what.kind), what.place);
    return inner().submit(stream, what);
  }
  void begin_capture(stream_id stream, place from) override {
    strike<capture_error>(seam_call::capture, "begin_capture", from);
    inner().begin_capture(stream, from);
  }
  graph_id end_capture(stream_id stream, place from) override {
    strike<capture_error>(seam_call::capture, "end_capture", from);
    return inner().end_capture(stream, from);
  }
  executable_id instantiate(graph_id graph, stream_id upload_on, place from) override {
    strike<device_error>(seam_call::instantiate, "instantiate", from);
    return inner().instantiate(graph, upload_on, from);
  }
  graph_id clone_without(graph_id graph, std::span<const node_id> gone, place from) override {
    strike<device_error>(seam_call::clone, "clone_without", from);
    return inner().clone_without(graph, gone, from);
  }
  executable_id instantiate_device_driven(graph_id graph, std::span<const node_id> driven,
                                          stream_id upload_on, place from) override {
    strike<device_error>(seam_call::instantiate, "instantiate_device_driven", from);
    return inner().instantiate_device_driven(graph, driven, upload_on, from);
  }
  void launch(executable_id executable, stream_id stream, place from) override {
    strike<device_error>(seam_call::launch, "launch", from);
    inner().launch(executable, stream, from);
  }
  void enable(executable_id executable, node_id node, bool on, place from) override {
    strike<device_error>(seam_call::enable, "enable", from);
    inner().enable(executable, node, on, from);
  }
  void set_parameters(executable_id executable, node_id node, const work& what) override {
    strike<device_error>(seam_call::set_parameters, "set_parameters", what.place);
    inner().set_parameters(executable, node, what);
  }
  bool update(executable_id executable, graph_id graph, place from) override {
    strike<device_error>(seam_call::update, "update", from);
    return inner().update(executable, graph, from);
  }

 private:
  template <class Error>
  void strike(seam_call kind, std::string_view call, place from) {
    if (plan_->strikes(kind)) throw Error{{call, traits().name, from}, "injected fault"};
  }

  std::shared_ptr<fault_plan> plan_;
};

}  // namespace

std::unique_ptr<device_api> faulty(std::unique_ptr<device_api> inner,
                                   std::shared_ptr<fault_plan> plan) {
  return std::make_unique<faulty_device>(std::move(inner), std::move(plan));
}

}  // namespace reprise
