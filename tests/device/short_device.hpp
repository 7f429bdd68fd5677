// A device that has only so many bytes, for tests of what happens when memory is short.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/forwarding.hpp"

namespace reprise::test {

// What it has, and what was freed or waited for while a capture was open.
struct short_memory {
  std::size_t limit = 0;
  std::size_t held = 0;
  int refused = 0;
  int disturbed = 0;  // releases and synchronises inside a capture
  bool captured = false;
};

class short_device final : public forwarding_device {
 public:
  short_device(std::unique_ptr<device_api> inner, short_memory& state)
      : forwarding_device{std::move(inner)}, state_{state} {}

  std::byte* allocate(memory_kind kind, std::size_t bytes, place from) override {
    if (state_.held + bytes > state_.limit) {
      ++state_.refused;
      throw out_of_memory{{"allocate", traits().name, from}, bytes, state_.limit - state_.held};
    }
    std::byte* const begin = forwarding_device::allocate(kind, bytes, from);
    sizes_[begin] = bytes;
    state_.held += bytes;
    return begin;
  }
  void release(memory_kind kind, std::byte* begin) noexcept override {
    if (state_.captured) ++state_.disturbed;
    state_.held -= sizes_[begin];
    forwarding_device::release(kind, begin);
  }
  void synchronize(stream_id stream, place from) override {
    if (state_.captured) ++state_.disturbed;
    forwarding_device::synchronize(stream, from);
  }
  void begin_capture(stream_id stream, place from) override {
    forwarding_device::begin_capture(stream, from);
    state_.captured = true;
  }
  graph_id end_capture(stream_id stream, place from) override {
    state_.captured = false;
    return forwarding_device::end_capture(stream, from);
  }
  void abandon_capture(stream_id stream) noexcept override {
    state_.captured = false;
    forwarding_device::abandon_capture(stream);
  }

 private:
  short_memory& state_;
  std::map<std::byte*, std::size_t> sizes_;
};

}  // namespace reprise::test
