// `sim:seed=N` as a device: the calls of the seam over the adversary, and its controls.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/sim/adversary.hpp"
#include "reprise/sim/controls.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/sim/simulated_device.hpp"

namespace reprise::sim {

namespace {

class adversary_device final : public simulated_device, public controls {
 public:
  adversary_device(device_traits traits, std::unique_ptr<adversary> runs)
      : adversary_device{std::move(traits), runs.get(), std::move(runs)} {}
  ~adversary_device() override { adversary_.close_device(held_text()); }

  void hold(stream_id stream) override { adversary_.hold(stream); }
  void release(stream_id stream) override { adversary_.let_go(stream); }
  using simulated_device::release;
  void slow(stream_id stream, std::uint64_t factor) override { adversary_.slow(stream, factor); }
  void lasts(std::string_view label, std::uint64_t units) override {
    adversary_.lasts(label, units);
  }
  void capture_globally(bool on) override { set_global_captures(on); }
  void spoil_capture(stream_id stream, std::string_view cause) override { spoil(stream, cause); }
  void host_touches(const void* begin, std::size_t bytes, bool writes, place from) override {
    adversary_.host_touches(begin, bytes, writes, from);
  }
  const journal& so_far() const override { return adversary_.so_far(); }
  std::uint64_t now() const override { return adversary_.latest_end(); }

 private:
  adversary_device(device_traits traits, adversary* runs, std::unique_ptr<engine> owned)
      : simulated_device{std::move(traits), std::move(owned)}, adversary_{*runs} {}

  adversary& adversary_;
};

}  // namespace

std::unique_ptr<device_api> open_adversary(const adversary_options& options) {
  if (!built_with_checks) {
    throw usage_error{
        "this build has no simulated GPU, for it was made with REPRISE_CHECKS=OFF; build with ON"};
  }
  device_traits traits;
  traits.name = fmt::format("sim:seed={}", options.seed);
  traits.model = "simulated GPU, adversarial schedule";
  traits.bodies = device_kind::cpu;
  traits.arch_chain = {"checked"};  // kernel/registry.hpp: checked_arch
  traits.threads = 1;
  auto runs = std::make_unique<adversary>(options, traits.name);
  return std::make_unique<adversary_device>(std::move(traits), std::move(runs));
}

controls* controls_of(device_ref device) {
  return dynamic_cast<controls*>(&device.api().innermost());
}

}  // namespace reprise::sim
