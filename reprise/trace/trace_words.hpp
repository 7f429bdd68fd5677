// The words of a trace's text that its writer and its parser share. For this room's .cpp files.
#pragma once

#include <string>
#include <string_view>

#include "reprise/trace/trace.hpp"

namespace reprise {

inline constexpr std::string_view first_line = "reprise-trace 1";

// "host_call": the kind's name without blanks.
std::string word_of(work_kind kind);

constexpr std::string_view word_of(memory_kind kind) {
  return kind == memory_kind::device ? "device" : "pinned";
}

constexpr bool is_printable(char c) {
  return c >= 0x20 && c <= 0x7e;
}

// Which parts the text of a work has beside kind, label and accesses.
constexpr bool has_from(work_kind kind) {
  return kind == work_kind::copy;
}
constexpr bool has_to(work_kind kind) {
  return kind == work_kind::copy || kind == work_kind::fill;
}
constexpr bool has_pattern(work_kind kind) {
  return kind == work_kind::fill;
}
constexpr bool names_event(work_kind kind) {
  return kind == work_kind::event_record || kind == work_kind::event_wait;
}

}  // namespace reprise
