// The engine of `cpu`: work runs when it is enqueued, on the calling thread and its workers. A
// stream is a name, and every event has happened.
#include <unistd.h>

#include <utility>

#include "reprise/sim/blocks.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/sim/processor.hpp"
#include "reprise/sim/simulated_device.hpp"
#include "reprise/sim/workers.hpp"

namespace reprise::sim {

namespace {

class in_order final : public engine {
 public:
  explicit in_order(int threads) : workers_{threads} {}

  void enter(std::string_view, place) override {}
  host_scheduler* threads() override { return nullptr; }

  // Of the machine.
  memory_figures figures() override {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return {page * static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)),
            page * static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES))};
  }
  std::byte* allocate(memory_kind, std::size_t bytes, place) override {
    return blocks_.allocate(bytes);
  }
  void release(memory_kind, std::byte* block) noexcept override { blocks_.release(block); }
  bool owns(const std::byte* begin, std::size_t bytes) const override {
    return blocks_.owns(begin, bytes);
  }
  bool strays(const std::byte* begin, std::size_t bytes) const override {
    return blocks_.strays(begin, bytes);
  }
  bool watches_memory() const override { return false; }
  void note(stream_id, const block_note&) noexcept override {}

  void open(stream_id, std::uint64_t, place) override {}
  void close(stream_id) noexcept override {}
  void record(event_id, stream_id, place) override {}
  void wait(event_id, stream_id, place) override {}
  void forget(event_id) noexcept override {}
  bool happened(event_id, place) override { return true; }
  void finish(event_id, place) override {}
  void finish(stream_id, place) override {}

  void run(stream_id, const work& what) override { run_now(what, workers_.ref()); }
  void launch(const std::shared_ptr<executable_body>& body, stream_id, place) override {
    body->run(workers_.ref());
  }
  void retire(std::shared_ptr<executable_body>) noexcept override {}
  void settle() noexcept override {}
  void close_finished() noexcept override {}

  void captured(stream_id, const work&) override {}
  void capture_changed(stream_id, bool) noexcept override {}

 private:
  workers workers_;
  block_table blocks_;
};

}  // namespace

device_traits cpu_traits(int threads) {
  device_traits traits;
  traits.name = "cpu";
  traits.model = processor_model();
  traits.bodies = device_kind::cpu;
  traits.arch_chain = processor_arch_chain();
  traits.threads = threads > 0 ? threads : processor_threads();
  return traits;
}

std::unique_ptr<device_api> open_cpu(int threads) {
  return open_in_order(cpu_traits(threads));
}

std::unique_ptr<device_api> open_in_order(device_traits traits) {
  auto engine = std::make_unique<in_order>(traits.threads);
  return std::make_unique<simulated_device>(std::move(traits), std::move(engine));
}

}  // namespace reprise::sim
