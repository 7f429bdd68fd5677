// What every test on a card stands on: the first usable one, opened, with a stream and a pool.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "bodies.hpp"
#include "reprise/cuda/device.hpp"
#include "reprise/device/device.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/device/memory.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {

// The ordinal of the card to test on; nothing where none is usable.
inline std::optional<int> usable_card() {
  for (const cuda_row& row : list_cuda_devices()) {
    if (row.usable) return row.ordinal;
  }
  return std::nullopt;
}

// The GPU gate asks for a card: there a missing one is a failure, not a skip.
inline bool gpu_is_demanded() {
  const char* demanded = std::getenv("REPRISE_TEST_DEVICES");
  return demanded != nullptr && std::string_view{demanded} == "cuda";
}

class on_a_gpu : public testing::Test {
 protected:
  void SetUp() override {
    const std::optional<int> card = usable_card();
    if (!card && gpu_is_demanded()) FAIL() << "the gate asks for a GPU: " << why_no_cuda();
    if (!card) GTEST_SKIP() << "no GPU: " << why_no_cuda();
    opened_.emplace(open_cuda(*card));
    stream_.emplace(*opened_, std::source_location::current());
    memory_.emplace(*opened_, "test");
  }

  // In the order that owners should keep; then nothing may have been said about leaks.
  void TearDown() override {
    memory_.reset();
    stream_.reset();
    opened_.reset();
  }

  device_ref gpu() { return *opened_; }
  device_api& api() { return gpu().api(); }
  stream_ref s() { return *stream_; }
  pool& memory() { return *memory_; }

  buffer<float> floats(std::size_t count, float value) {
    buffer<float> made{memory(), count, s()};
    fill(s(), write<float>{made}, value);
    return made;
  }

  void add_to(stream_ref on, const buffer<float>& data, float by,
              std::source_location place = std::source_location::current()) {
    enqueue_kernel(on, "add", &add, add_arguments{data.all().data(), data.size(), by}, place);
  }

  template <class T>
  std::vector<T> read_back(stream_ref on, view<T> from) {
    pinned<T> host{gpu(), from.size()};
    copy(on, read<T>{from}, write<T>{host.all()});
    on.synchronize();
    return {host.data(), host.data() + host.size()};
  }

  // The stream takes eager work and a new capture, and no error is left over.
  void expect_usable(stream_ref on) {
    EXPECT_FALSE(on.capturing());
    EXPECT_EQ(error_slot(), 0);
    const buffer<float> x = floats(100, 1.0f);
    s().synchronize();
    add_to(on, x, 1.0f);
    const graph made = capture(on, [&](stream_ref c) { add_to(c, x, 3.0f); });
    made.instantiate(on).launch(on);
    EXPECT_EQ(read_back(on, x.all()), std::vector<float>(100, 5.0f));
  }

 private:
  std::optional<device> opened_;
  std::optional<stream> stream_;
  std::optional<pool> memory_;
};

}  // namespace reprise::test
