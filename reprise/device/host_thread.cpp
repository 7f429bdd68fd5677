#include "reprise/device/host_thread.hpp"

#include <utility>

#include "reprise/base/error.hpp"

namespace reprise {

host_thread::host_thread(device_ref device, std::function<void()> body)
    : scheduler_{device.api().threads()} {
  auto kept = [this, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      thrown_ = std::current_exception();
    }
  };
  if (scheduler_ != nullptr) {
    number_ = scheduler_->start(std::move(kept));
  } else {
    thread_ = std::thread{std::move(kept)};
  }
}

host_thread::~host_thread() {
  if (!ended_) wait();
  if (!thrown_) return;
  try {
    std::rethrow_exception(thrown_);
  } catch (const std::exception& failure) {
    report_error(failure.what());
  } catch (...) {
    report_error("a host thread threw something that is no exception");
  }
}

void host_thread::join() {
  wait();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void host_thread::wait() {
  if (scheduler_ != nullptr) {
    scheduler_->join(number_);
  } else {
    thread_.join();
  }
  ended_ = true;
}

void pause(device_ref device) {
  if (host_scheduler* const scheduler = device.api().threads()) {
    scheduler->pause();
  } else {
    std::this_thread::yield();
  }
}

std::chrono::milliseconds host_time(device_ref device) {
  if (const host_scheduler* const scheduler = device.api().threads()) return scheduler->now();
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace reprise
