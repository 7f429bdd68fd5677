// What a producer is told by the plan of its step, and what it tells: words that the host, CPU
// bodies and CUDA bodies read alike.
//
// Plan words, u64, in device memory, written anew for each step:
//
//   descriptor i   16 words at 16 i, which a producer asks for at once
//     0 position   where its payload begins in the ring, a multiple of 16; or that and any number
//                  of times around
//     1 capacity   bytes of the ring, a multiple of 16
//     2 most       bytes that were reserved for its rows; without the marker
//     3 slot       of its publication word
//     4 tag        of this lap through the slots
//     5 replay     number of the run
//     6 table      index of the word where its row table begins; 0: publish nothing
//     7 flags      marked: the payload begins with a marker of 16 bytes
//     8 on         its row table, where that has no more than three runs
//   row tables     i64: count, then (first row, rows) pairs; longer ones are shared by producers of
//                  equal rows and lie behind the descriptors
//
// Publication word, one u64 in pinned memory, the last thing that a producer writes:
//
//   63 ready | 62 clamped | 61..48 tag | 47..36 point | 35..0 bytes of rows
//
// A marker is {replay, point}: what the producer itself believes, to be compared with the label
// that the plan gives the record.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/portable.hpp"

namespace reprise {

inline constexpr std::size_t descriptor_words = 16;
namespace descriptor {
inline constexpr std::size_t position = 0, capacity = 1, most = 2, slot = 3, tag = 4, replay = 5,
                             table = 6, flags = 7;
inline constexpr std::uint64_t marked = 1;
inline constexpr std::size_t own_table = 8, most_own_runs = 3;
}  // namespace descriptor

inline constexpr std::size_t payload_alignment = 16;
inline constexpr std::size_t marker_bytes = 16;

REPRISE_HD constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + payload_alignment - 1) / payload_alignment * payload_alignment;
}

namespace publication {

inline constexpr int tag_bits = 14, point_bits = 12, size_bits = 36;
inline constexpr std::uint64_t laps = std::uint64_t{1} << tag_bits;  // before a tag comes again
inline constexpr std::uint64_t points = std::uint64_t{1} << point_bits;
inline constexpr std::uint64_t most_bytes = (std::uint64_t{1} << size_bits) - 1;
inline constexpr std::uint64_t ready = std::uint64_t{1} << 63;
inline constexpr std::uint64_t clamped = std::uint64_t{1} << 62;
static_assert(2 + tag_bits + point_bits + size_bits == 64);

REPRISE_HD constexpr std::uint64_t word(std::uint64_t tag, std::uint64_t point, std::uint64_t bytes,
                                        bool was_clamped) {
  return ready | (was_clamped ? clamped : 0) | (tag % laps) << (point_bits + size_bits) |
         (point % points) << size_bits | bytes;
}
constexpr std::uint64_t tag_of(std::uint64_t word) {
  return word >> (point_bits + size_bits) & (laps - 1);
}
constexpr std::uint64_t point_of(std::uint64_t word) {
  return word >> size_bits & (points - 1);
}
constexpr std::uint64_t bytes_of(std::uint64_t word) {
  return word & most_bytes;
}

}  // namespace publication

// A run of a row table, as far as the source has such rows.
struct table_run {
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
  bool clamped = false;
};

REPRISE_HD constexpr table_run run_within(std::int64_t first, std::int64_t rows,
                                          std::uint64_t source_rows) {
  if (first < 0 || rows < 0 || static_cast<std::uint64_t>(first) > source_rows) return {0, 0, true};
  const auto from = static_cast<std::uint64_t>(first);
  const auto wanted = static_cast<std::uint64_t>(rows);
  const std::uint64_t most = source_rows - from;
  return {from, wanted < most ? wanted : most, wanted > most};
}

// How many runs a table has: the count it says, but none past the end of the plan words.
struct table_count {
  std::uint64_t runs = 0;
  bool off = false;
  bool clamped = false;
};

REPRISE_HD constexpr table_count count_within(std::int64_t says, std::uint64_t table,
                                              std::uint64_t plan_words) {
  if (says == -1) return {0, true, false};
  if (says < 0) return {0, false, true};
  const std::uint64_t room = table + 1 < plan_words ? (plan_words - table - 1) / 2 : 0;
  const auto wanted = static_cast<std::uint64_t>(says);
  return {wanted < room ? wanted : room, false, wanted > room};
}

}  // namespace reprise
