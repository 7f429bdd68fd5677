// The columns of a record in files and tables, with a version: one list for every sink and reader.
//
// A run directory says the version in its manifest and in each segment, a ClickHouse database in a
// table beside the records. A reader takes its own version and refuses others by name; a change of
// the list is a new version. Constant data, safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace reprise {

inline constexpr std::uint32_t record_schema_version = 1;

// What one record may hold: more is a mistake of whoever made it.
inline constexpr std::uint64_t most_record_bytes = std::uint64_t{1} << 40;

struct record_column {
  std::string_view name;
  std::string_view arrow;       // its type in segments
  std::string_view clickhouse;  // its type in the table
  std::string_view what;
};

inline constexpr std::array<record_column, 16> record_columns{{
    {"run", "uint64", "UInt64", "the process that recorded"},
    {"step", "uint64", "UInt64", "step of the run, from 0"},
    {"replay", "uint64", "UInt64", "which run of a step; increases over the process"},
    {"kind", "string", "String", "kind of the point"},
    {"layer", "int32", "Int32", "layer of the point; -1: none"},
    {"shard", "int32", "Int32", "which shard of the tensor this is, from 0"},
    {"shards", "int32", "Int32", "how many there are; 1: this is the whole tensor"},
    {"shard_axis", "int32", "Int32", "axis of the tensor that is split; -1: none"},
    {"content", "string", "String", "rows, or scores of a probe"},
    {"request", "uint64", "UInt64", "whose rows these are"},
    {"first_row", "int64", "Int64", "token of the request that the first row is of"},
    {"rows", "int64", "Int64", "how many rows"},
    {"place", "int64", "Int64", "place of the request in its batch"},
    {"dtype", "string", "String", "element type: f32, f16, bf16, f64, i32, i64, u64, u8"},
    {"shape", "list<int64>", "Array(Int64)", "row major, rows first"},
    {"bytes", "large_binary", "String", "the elements, little endian"},
}};

}  // namespace reprise
