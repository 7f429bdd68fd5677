#include "reprise/trace/trace.hpp"

#include <fmt/format.h>

#include <array>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

struct kind_row {
  std::string_view name;
  std::uint32_t fields;
};

// In the order of call_kind.
constexpr std::array<kind_row, call_kinds> kinds{{
    {"memory", 0},
    {"allocate", has_memory | has_bytes | has_block},
    {"release", has_memory | has_block},
    {"create_stream", has_stream},
    {"destroy_stream", has_stream},
    {"synchronize_stream", has_stream},
    {"create_event", has_event},
    {"destroy_event", has_event},
    {"finished", has_event | has_answer},
    {"synchronize_event", has_event},
    {"submit", has_stream | has_work | has_node},
    {"begin_capture", has_stream},
    {"end_capture", has_stream | has_made},
    {"abandon_capture", has_stream},
    {"capturing", has_stream | has_answer},
    {"place_in_capture", has_stream | has_place},
    {"precedes", has_stream | has_place | has_answer},
    {"keep_with_capture", has_stream},
    {"nodes", has_graph | has_count},
    {"clone_without", has_graph | has_nodes | has_made},
    {"destroy_graph", has_graph},
    {"instantiate", has_executable | has_graph | has_stream},
    {"instantiate_device_driven", has_executable | has_graph | has_nodes | has_stream},
    {"device_handle", has_executable | has_node},
    {"keep_with_executable", has_executable},
    {"launch", has_executable | has_stream},
    {"enable", has_executable | has_node | has_on},
    {"set_parameters", has_executable | has_work | has_node},
    {"update", has_executable | has_graph | has_answer},
    {"destroy_executable", has_executable},
    {"settle", 0},
    {"bytes_per_node", has_count},
}};

constexpr std::array<std::string_view, failures> failure_names{
    "none", "usage_error", "device_error", "capture_error", "out_of_memory", "other"};

}  // namespace

std::uint32_t fields_of(call_kind kind) {
  return kinds[static_cast<std::size_t>(kind)].fields;
}

std::string_view name_of(call_kind kind) {
  return kinds[static_cast<std::size_t>(kind)].name;
}

std::string_view name_of(failure how) {
  return failure_names[static_cast<std::size_t>(how)];
}

std::string describe(const traced_call& call) {
  std::string text{name_of(call.kind)};
  if ((fields_of(call.kind) & has_work) != 0) {
    text += fmt::format(" {} {:?}", name_of(call.work.kind), call.work.label);
  }
  if (call.at.line != 0) text += fmt::format(" at {}:{}", call.at.file, call.at.line);
  return text;
}

failure failure_in_flight() {
  try {
    throw;
  } catch (const out_of_memory&) {
    return failure::out_of_memory;
  } catch (const capture_error&) {
    return failure::capture_error;
  } catch (const device_error&) {
    return failure::device_error;
  } catch (const usage_error&) {
    return failure::usage_error;
  } catch (...) {
    return failure::other;
  }
}

}  // namespace reprise
