// What the tests of the seam stand on: each device under test with a stream, a pool and counts of
// every call; and the bare implementations, for wrappers that a test puts around a device.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/cuda/device.hpp"
#include "reprise/device/counting.hpp"
#include "reprise/device/device.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/device/slab_store.hpp"
#include "reprise/sim/controls.hpp"
#include "reprise/sim/device.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {

inline constexpr std::size_t kib = 1024;

// The implementation alone, to be wrapped. A simulated GPU takes no rare ways here: these suites
// count calls, bytes and waits.
inline std::unique_ptr<device_api> open_bare(const std::string& spec) {
  if (spec == "cpu") return sim::open_cpu(2);
  if (spec.starts_with("sim:seed=")) {
    return sim::open_adversary(
        {.seed = std::stoull(spec.substr(spec.find('=') + 1)), .takes_fault_points = false});
  }
  return open_cuda(std::stoi(spec.substr(spec.find(':') + 1)));
}

template <class T>
void upload(stream_ref stream, const std::vector<T>& from, const buffer<T>& to) {
  copy(stream, read<T>{view<const T>{from.data(), from.size()}}, write<T>{to});
}

template <class T>
std::vector<T> read_back(stream_ref stream, const buffer<T>& from) {
  std::vector<T> host(from.size());
  copy(stream, read<T>{from}, write<T>{view<T>{host.data(), host.size()}});
  stream.synchronize();
  return host;
}

class on_each_device : public testing::TestWithParam<std::string> {
 protected:
  explicit on_each_device(const kernel_registry& kernels = kernel_registry{})
      : counts{std::make_shared<call_counts>()},
        opened_{open_device(GetParam(), {.threads = 2, .counts = counts}, kernels)} {}

  device_ref dev() const { return opened_; }
  stream_ref s() const { return stream_; }
  pool& memory() { return memory_; }
  std::size_t leased() const { return dev().state().slabs->leased_bytes(); }
  std::size_t idle() const { return dev().state().slabs->idle_bytes(); }

  template <class T>
  buffer<T> filled(std::size_t count, T value) {
    buffer<T> made{memory_, count, s()};
    fill(s(), write<T>{made}, value);
    return made;
  }

  // The stream takes eager work and a new capture.
  void expect_usable(stream_ref on) {
    EXPECT_FALSE(on.capturing());
    buffer<int> x{memory_, 8, on};
    fill(on, write<int>{x}, 1);
    EXPECT_EQ(read_back(on, x), std::vector<int>(8, 1));
    const graph made = capture(on, [&](stream_ref c) { fill(c, write<int>{x}, 2); });
    const executable replayed = made.instantiate(on);
    EXPECT_EQ(read_back(on, x), std::vector<int>(8, 1));
    replayed.launch(on);
    EXPECT_EQ(read_back(on, x), std::vector<int>(8, 2));
  }

  const std::shared_ptr<call_counts> counts;

 private:
  device opened_;
  stream stream_{opened_};
  pool memory_{opened_, "test"};
};

inline auto each_device() {
  return testing::ValuesIn(devices_under_test());
}
inline std::string device_of(const testing::TestParamInfo<std::string>& of) {
  return test_name(of.param);
}

}  // namespace reprise::test
