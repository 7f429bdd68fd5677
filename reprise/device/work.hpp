// What can be enqueued on a stream. Everything goes through `device_api::submit` as one of these,
// so that decorators, the door of a warm-up and the simulator see all of it.
//
// A `work` borrows: whoever stores it beyond the call (a capture) copies the arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <span>
#include <string_view>

#include "reprise/base/ids.hpp"
#include "reprise/device/access.hpp"

namespace reprise {

enum class work_kind : std::uint8_t {
  kernel,
  copy,
  fill,
  host_call,
  empty,  // does nothing: a place in the order, and a node of a graph
  external,
  event_record,
  event_wait,
};
inline constexpr std::size_t work_kinds = 8;

std::string_view name_of(work_kind kind);

// A kernel's body with its arguments packed behind it. `invoke` unpacks them and calls the body
// with the device's call (a plain cpu_call or a cuda_call), whose type the resolved cell knows.
struct kernel_call {
  void (*invoke)(void* call, const std::byte* arguments) = nullptr;
  const std::byte* arguments = nullptr;  // trivially copyable, 16-byte aligned
  std::size_t argument_bytes = 0;
  std::span<std::byte> workspace;  // what the cell asked for, device memory
};

// Bytes from one place to another. Host memory must be pinned inside a capture.
struct copy_call {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
};

// `bytes` bytes of a repeated pattern of 1, 2 or 4 bytes.
struct fill_call {
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  std::uint32_t pattern = 0;
  std::uint8_t pattern_bytes = 1;
};

struct work {
  work_kind kind = work_kind::kernel;
  std::string_view label;
  std::span<const access> accesses;
  std::source_location place;

  kernel_call kernel;                                     // kernel
  copy_call copy;                                         // copy
  fill_call fill;                                         // fill
  const std::function<void()>* on_host = nullptr;         // host_call
  const std::function<void(void*)>* on_stream = nullptr;  // external: given the native stream
  event_id event = event_id::none;                        // event_record, event_wait
};

}  // namespace reprise
