// What a monitor is to take: which points, and which rows of each.
#pragma once

#include <cstdint>
#include <string_view>

#include "reprise/tap/point_set.hpp"

namespace reprise {

// Rows are all dimensions of a tensor before the last one. What is taken of them is packed.
class row_mode {
 public:
  enum class kind : std::uint8_t { none, all, real, last, prefix, chunked };

  // The whole tensor, padding included.
  static row_mode all() { return {kind::all, nullptr, 0}; }
  // The rows that requests say are theirs; without requests, all.
  static row_mode real() { return {kind::real, nullptr, 0}; }
  // The last row of each request; without requests, of the tensor.
  static row_mode last() { return {kind::last, nullptr, 0}; }
  // The first n; `n` is a word of device memory that each replay reads, clamped to the tensor. It
  // outlives what is recorded.
  static row_mode prefix(const std::int64_t* n) { return {kind::prefix, n, 0}; }
  // The tensor is so many chunks of as many rows, at most 64; of chunk i the first rows, as many as
  // the request in place i has.
  static row_mode chunked(int parts) { return {kind::chunked, nullptr, parts}; }
  static row_mode none() { return {kind::none, nullptr, 0}; }

  kind what() const { return what_; }
  const std::int64_t* count() const { return count_; }
  int parts() const { return parts_; }
  bool follows_tables() const { return what_ == kind::real || what_ == kind::last; }
  bool operator==(const row_mode&) const = default;

 private:
  row_mode(kind what, const std::int64_t* count, int parts)
      : what_{what}, count_{count}, parts_{parts} {}

  kind what_;
  const std::int64_t* count_;
  int parts_;
};

// The first spec that contains a point is the one that counts.
struct tap_spec {
  point_set where;
  row_mode rows = row_mode::all();
};

// Rows of the step's tensors that belong to one request.
struct request_rows {
  std::uint64_t request = 0;
  std::int64_t first = 0;           // row of the tensor; of chunked points: place says which chunk
  std::int64_t count = 0;           // rows
  std::int64_t place_in_batch = 0;  // in the original batch
  std::int64_t first_token = 0;     // of the request, that its first row is of
};

// A step that is to replay is gated: of what is watched only the enabled points fire, also where it
// falls back to eager. One that never is (a prefill) is not: its points fire, enabled or not; but
// those of `last` and `real`, whose row tables follow what is enabled on every step.
enum class step_gate : std::uint8_t { gated, ungated };

// Whose rows padding is.
inline constexpr std::uint64_t no_request = ~std::uint64_t{0};

}  // namespace reprise
