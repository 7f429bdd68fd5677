#include "reprise/tap/monitor.hpp"

#include <exception>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/tap/tap_observer.hpp"

namespace reprise {

monitor::monitor(device_ref device, monitor_options options)
    : core_{std::make_shared<tap_core>(device, options)} {}

monitor::~monitor() {
  try {
    stop();
  } catch (const std::exception& failed) {
    report_error(failed.what());
  }
}

void monitor::watch(std::vector<tap_spec> specs) {
  core_->watch(std::move(specs));
}

void monitor::enable(point_set enabled) {
  core_->enable(std::move(enabled));
}

std::string monitor::unmatched() const {
  return core_->unmatched();
}

void monitor::send_to(std::unique_ptr<record_sink> sink, sink_queue_options options) {
  core_->drains.outlets().add(std::move(sink), std::move(options));
}

void monitor::deliver_to(std::function<void(const tap_record&)> call) {
  core_->drains.outlets().add(std::move(call));
}

std::shared_ptr<mark_observer> monitor::observer() const {
  return std::make_shared<tap_observer>(core_);
}

void monitor::plan_step(std::span<const request_rows> requests, step_gate gate) {
  core_->next_step(requests, gate);
}

void monitor::flush() {
  core_->flush();
}

void monitor::await_request(std::uint64_t request) {
  core_->await_request(request);
}

void monitor::stop() {
  core_->stop();
}

tap_counts monitor::counts() const {
  return core_->counts();
}

std::vector<named_sink_counts> monitor::sink_counts() const {
  return core_->drains.outlets().counts();
}

std::string monitor::metrics() const {
  return prometheus_text(counts()) + core_->drains.outlets().metrics();
}

}  // namespace reprise
