// What a test sees of a device beside its results: what was thrown or reported, as text, and how
// often each call of the seam was made.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/counting.hpp"

namespace reprise::test {

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
  // Of whatever kind.
  std::uint64_t all() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < seam_calls; ++i) sum += (*this)[static_cast<seam_call>(i)];
    return sum;
  }

 private:
  const call_counts& counts_;
  std::array<std::uint64_t, seam_calls> before_{};
};

}  // namespace reprise::test
