// What the tests of the seam stand on: each device under test with a stream, a pool and counts of
// every call; wrappers that a test puts around a device; and what was thrown or reported, as text.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/cuda/device.hpp"
#include "reprise/device/counting.hpp"
#include "reprise/device/device.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/device/slab_store.hpp"
#include "reprise/sim/device.hpp"
#include "tests/support/devices.hpp"

namespace reprise::test {

inline constexpr std::size_t kib = 1024;

// The implementation alone, to be wrapped.
inline std::unique_ptr<device_api> open_bare(const std::string& spec) {
  if (spec == "cpu") return sim::open_cpu(2);
  return open_cuda(std::stoi(spec.substr(spec.find(':') + 1)));
}

// What `call` throws, as text; a failure when it throws nothing or something else.
template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const Error& failure) {
    return failure.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "threw another kind: " << other.what();
    return {};
  }
  ADD_FAILURE() << "threw nothing";
  return {};
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// One line that names the call, the device and this source file.
inline void expect_names(std::string_view message, std::string_view call, std::string_view device,
                         std::string_view file) {
  EXPECT_TRUE(message.starts_with(std::string{call} + " on " + std::string{device} + " failed: "))
      << message;
  EXPECT_TRUE(has(message, "(" + std::string{file} + ":")) << message;
  EXPECT_FALSE(has(message, "\n")) << message;
}

// Collects what destructors report, instead of stderr.
class reports {
 public:
  reports() : before_{set_error_handler(&note)} { (void)taken(); }
  ~reports() { set_error_handler(before_); }
  reports(const reports&) = delete;
  reports& operator=(const reports&) = delete;

  static std::vector<std::string> taken() {
    const std::lock_guard lock{guard};
    return std::exchange(all, {});
  }

 private:
  static void note(std::string_view message) noexcept {
    const std::lock_guard lock{guard};
    all.emplace_back(message);
  }
  static inline std::mutex guard;
  static inline std::vector<std::string> all;

  error_handler before_;
};

// How often calls were made since it was constructed.
class calls_since {
 public:
  explicit calls_since(const call_counts& counts) : counts_{counts} {
    for (std::size_t i = 0; i < seam_calls; ++i) before_[i] = counts[static_cast<seam_call>(i)];
  }
  std::uint64_t operator[](seam_call call) const {
    return counts_[call] - before_[static_cast<std::size_t>(call)];
  }

 private:
  const call_counts& counts_;
  std::array<std::uint64_t, seam_calls> before_{};
};

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
  on_each_device()
      : counts{std::make_shared<call_counts>()},
        opened_{open_device(GetParam(), {.threads = 2, .counts = counts}, kernel_registry{})} {}

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
