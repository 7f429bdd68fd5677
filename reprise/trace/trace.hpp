// A trace: what a device was asked for, call by call, without data and without addresses. It is
// taken by tracing(), kept as text (trace_file.hpp), and made again on another device by rerun().
//
// The data model, from the outside in:
//
//   trace         a device's calls in the order in which they returned. What ends a life (destroy,
//                 release, abandon) stands where it began: its handle or address may be given out
//                 anew before it returns.
//   traced_call   one call: kind, thread, the handles it names and the ones it gave, sizes, the
//                 answer, the source line, and how it failed. fields_of() says which a kind has.
//   traced_work   what was enqueued, or set as parameters: kind, label and accesses; no arguments.
//   traced_range  bytes of a block that the device gave out, of host memory, or of a null pointer.
//
// Handles are renamed to 1, 2, 3 … in order of appearance, each kind in a row of its own, and keep
// their types; so are blocks, host memory, threads, and places in a capture. `none` is none. A
// handle that the device gives out again is a new number.
//
// A value: copied, compared and changed like any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/device/api.hpp"
#include "reprise/device/work.hpp"

namespace reprise {

// A block that the device gave out; and a capture_place that somebody asked for.
enum class block_number : std::uint64_t { none };
enum class place_number : std::uint64_t { none };

enum class memory_space : std::uint8_t {
  null,   // a null pointer
  block,  // `number` is a block_number
  host,   // memory that is not the device's; `number` tells stretches apart that do not overlap
};

struct traced_range {
  memory_space space = memory_space::null;
  std::uint64_t number = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  bool operator==(const traced_range&) const = default;
};

struct traced_access {
  traced_range where;
  bool writes = false;

  bool operator==(const traced_access&) const = default;
};

struct traced_work {
  work_kind kind = work_kind::empty;
  std::string label;
  std::vector<traced_access> accesses;
  traced_range from;                // copy
  traced_range to;                  // copy, fill
  std::uint8_t pattern_bytes = 0;   // fill
  event_id event = event_id::none;  // event_record, event_wait

  bool operator==(const traced_work&) const = default;
};

// What a call threw, by its type in base/error.hpp.
enum class failure : std::uint8_t {
  none,
  usage_error,
  device_error,
  capture_error,
  out_of_memory,
  other,
};
inline constexpr std::size_t failures = 6;

enum class call_kind : std::uint8_t {
  memory,
  allocate,
  release,
  create_stream,
  destroy_stream,
  synchronize_stream,
  create_event,
  destroy_event,
  finished,
  synchronize_event,
  submit,
  begin_capture,
  end_capture,
  abandon_capture,
  capturing,
  place_in_capture,
  precedes,
  keep_with_capture,
  nodes,
  clone_without,
  destroy_graph,
  instantiate,
  instantiate_device_driven,
  device_handle,
  keep_with_executable,
  launch,
  enable,
  set_parameters,
  update,
  destroy_executable,
  settle,
  bytes_per_node,
};
inline constexpr std::size_t call_kinds = 32;

// Which of a call's fields belong to its kind, in the order in which they are written.
enum call_field : std::uint32_t {
  has_memory = 1 << 0,
  has_bytes = 1 << 1,
  has_block = 1 << 2,
  has_executable = 1 << 3,
  has_graph = 1 << 4,
  has_nodes = 1 << 5,
  has_stream = 1 << 6,
  has_event = 1 << 7,
  has_work = 1 << 8,
  has_node = 1 << 9,
  has_place = 1 << 10,
  has_on = 1 << 11,
  has_made = 1 << 12,
  has_answer = 1 << 13,
  has_count = 1 << 14,
};

std::uint32_t fields_of(call_kind kind);

struct traced_line {
  std::string file;        // its name without folders, which are of one machine
  std::uint32_t line = 0;  // 0: the call has none, as destroying has

  bool operator==(const traced_line&) const = default;
};

struct traced_call {
  call_kind kind = call_kind::settle;
  std::uint32_t thread = 0;
  traced_line at;
  failure failed = failure::none;  // what it would have given is `none` then

  memory_kind memory = memory_kind::device;
  std::uint64_t bytes = 0;
  block_number block = block_number::none;
  executable_id executable = executable_id::none;
  graph_id graph = graph_id::none;
  std::vector<node_id> nodes;  // gone, or driven
  stream_id stream = stream_id::none;
  event_id event = event_id::none;
  traced_work work;
  node_id node = node_id::none;
  place_number place = place_number::none;
  bool on = false;
  graph_id made = graph_id::none;  // by end_capture, clone_without
  bool answer = false;             // of finished, capturing, precedes, update
  std::uint64_t count = 0;         // of nodes; bytes of bytes_per_node

  bool operator==(const traced_call&) const = default;
};

struct trace {
  std::string device;  // "cuda:0"
  device_kind bodies = device_kind::cpu;
  std::vector<traced_call> calls;
  std::uint64_t left_out = 0;  // calls made after the log was full: a trace is then a beginning

  bool operator==(const trace&) const = default;
};

std::string_view name_of(call_kind kind);
std::string_view name_of(failure how);

// "submit kernel "rms_norm" at decode.cpp:31": for messages.
std::string describe(const traced_call& call);

// Of the exception that is being handled.
failure failure_in_flight();

}  // namespace reprise
