#include "bench/tap/checking_sink.hpp"

#include <utility>

#include "reprise/device/host_thread.hpp"

namespace reprise::bench {

namespace {

class checking final : public record_sink {
 public:
  checking(device_ref device, std::shared_ptr<seen_records> into,
           std::function<bool(const tap_record&)> is_right)
      : device_{device}, into_{std::move(into)}, is_right_{std::move(is_right)} {}

  void open(std::string_view) override {}
  void write(std::span<const tap_record> records) override {
    wait_while_held();
    if (into_->compares.load()) {
      for (const tap_record& one : records) {
        ++into_->compared;
        if (!is_right_(one)) ++into_->wrong;
      }
    }
    into_->records += records.size();
  }
  void flush() override {}
  void close() override {}

 private:
  // Asleep; but on a simulated GPU, where one thread runs at a time, it gives way again and again.
  void wait_while_held() {
    if (!into_->held.load()) return;
    into_->asleep = true;
    if (device_.name().starts_with("sim:")) {
      wait_until(device_, [this] { return !into_->held.load(); });
    } else {
      into_->held.wait(true);
    }
  }

  device_ref device_;
  std::shared_ptr<seen_records> into_;
  std::function<bool(const tap_record&)> is_right_;
};

}  // namespace

std::unique_ptr<record_sink> checking_sink(device_ref device, std::shared_ptr<seen_records> into,
                                           std::function<bool(const tap_record&)> is_right) {
  return std::make_unique<checking>(device, std::move(into), std::move(is_right));
}

}  // namespace reprise::bench
