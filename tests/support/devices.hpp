// The devices that a test runs on: always the CPU, the simulated GPU under a few seeds, and the
// first GPU where one answers.
//
// With REPRISE_TEST_DEVICES=cuda (the GPU gate) a missing GPU is a failure instead of a skip.
#pragma once

#include <gtest/gtest.h>
#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/platform/platform.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise::test {

inline bool gpu_answers() {
  return automatic_device() != "cpu";
}

inline bool gpu_is_demanded() {
  const char* demanded = std::getenv("REPRISE_TEST_DEVICES");
  return demanded != nullptr && std::string_view{demanded} == "cuda";
}

// Call in tests that need a GPU: `if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";`
inline bool gpu_or_skip() {
  if (gpu_answers()) return true;
  if (gpu_is_demanded()) throw std::runtime_error{"the GPU gate asks for a GPU and none answers"};
  return false;
}

// What the simulated GPU finds fails the test, though it be told in a destructor.
inline const error_handler findings_fail = set_error_handler([](std::string_view message) noexcept {
  std::fprintf(stderr, "reprise: %.*s\n", static_cast<int>(message.size()), message.data());
  if (message.find("the simulator found a fault") != std::string_view::npos) {
    ADD_FAILURE() << message;
  }
});

inline std::vector<std::string> simulated_devices() {
  return {"sim:seed=1", "sim:seed=2"};
}

// Those whose work takes the time that it takes: for figures, and for models that would be slow.
inline std::vector<std::string> plain_devices() {
  std::vector<std::string> devices{"cpu"};
  if (gpu_or_skip()) devices.push_back(automatic_device());
  return devices;
}

inline std::vector<std::string> devices_under_test() {
  std::vector<std::string> devices = plain_devices();
  std::ranges::copy(simulated_devices(), std::back_inserter(devices));
  return devices;
}

// For tests that decode for a while: a sanitizer and a watched memory together take minutes.
inline std::vector<std::string> devices_for_long_tests() {
  return sanitized ? plain_devices() : devices_under_test();
}

inline device open_for_test(std::string_view spec, int threads = 0) {
  return open_device(spec, {.threads = threads, .counts = nullptr});
}

// For INSTANTIATE_TEST_SUITE_P: "cuda:0" and "sim:seed=7" are not names that GoogleTest takes.
inline std::string test_name(std::string spec) {
  for (char& c : spec) {
    if (c == ':' || c == '=') c = '_';
  }
  return spec;
}

}  // namespace reprise::test
