// The calls of the seam by kind, for decorators that count them and for those that make one fail.
// The kinds of enqueued work come first, in the order of work_kind.
#pragma once

#include <cstdint>
#include <string_view>

#include "reprise/device/work.hpp"

namespace reprise {

enum class seam_call : std::uint8_t {
  kernel,
  copy,
  fill,
  host_call,
  empty,
  external,
  event_record,
  event_wait,
  allocate,
  release,
  create_stream,
  create_event,
  synchronize,
  query,
  capture,
  clone,
  instantiate,
  launch,
  enable,
  set_parameters,
  update,
};
inline constexpr std::size_t seam_calls = 21;

std::string_view name_of(seam_call call);

// What `submit` is, by the work that it is given.
constexpr seam_call call_of(work_kind kind) {
  return static_cast<seam_call>(kind);
}

}  // namespace reprise
