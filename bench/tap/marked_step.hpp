// A step with marks, and what is right: what its records hold, and its output.
#pragma once

#include <cstdint>
#include <functional>

#include "reprise/records/tap_record.hpp"
#include "reprise/replay/lease.hpp"
#include "reprise/replay/step.hpp"

namespace reprise::bench {

// Borrowed of whoever made the step. Records may be looked at on any thread.
struct marked_step {
  const step* what = nullptr;
  std::uint64_t points = 0;  // that it marks; each is one record where all rows are taken
  std::function<bool(const tap_record&)> is_right;
  std::function<bool(stream_ref, const step_result&)> has_right_output;
};

// [rows, elements] of f32 in so many bytes, in rows of 8 KiB where they come out even.
inline dims rows_of(std::size_t bytes) {
  constexpr std::size_t row = 2048;
  const std::size_t elements = bytes / sizeof(float);
  const std::size_t width = elements % row == 0 ? row : elements;
  return {static_cast<std::int64_t>(elements / width), static_cast<std::int64_t>(width)};
}

}  // namespace reprise::bench
