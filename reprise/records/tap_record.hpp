// One row range of one point of one request, on the host: what a tap delivers and a sink is given.
//
// A record is a view: its text, shape and bytes belong to whoever hands it over, and are good
// during that call. record_batch (record_batch.hpp) is what owns them. docs/records.md has the
// schema for readers of files and tables; schema.hpp has it for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reprise/base/dtype.hpp"
#include "reprise/base/ids.hpp"

namespace reprise {

// rows: rows of the tensor that was tapped. scores: what a probe made of each of them.
enum class record_content : std::uint8_t { rows, scores };

constexpr std::string_view name_of(record_content content) {
  return content == record_content::rows ? "rows" : "scores";
}

struct tap_record {
  std::uint64_t run = 0;   // of the process that recorded; its monitor chose the number
  std::uint64_t step = 0;  // of the run, from 0
  replay_id replay = replay_id::none;
  std::string_view kind;  // of the point: "resid_pre"; not empty, UTF-8
  int layer = -1;         // of the point; -1: the point belongs to no layer
  int shard = 0;          // which part of the tensor the tapped one is, from 0 ...
  int shards = 1;         // ... of so many; 1: it is the whole tensor
  int shard_axis = -1;  // axis of the tapped tensor that is split; -1: none, as of sums to be added
  record_content content = record_content::rows;
  std::uint64_t request = 0;
  std::int64_t first_row = 0;  // the token of the request that the first row is of
  std::int64_t rows = 0;       // tokens first_row to first_row + rows - 1; shape[0]
  std::int64_t place = 0;      // of the request in its batch
  dtype type = dtype::f32;
  std::span<const std::int64_t> shape;  // row major; rows first
  std::span<const std::byte> bytes;     // product of shape x size_of(type), little endian
};

// "resid_pre:5", or "final_norm" where there is no layer; "q:5@1of4" for the second of four shards:
// the name that counts and exports use. Each shard is a point of its own.
std::string point_name(std::string_view kind, int layer, int shard = 0, int shards = 1);
inline std::string point_name(const tap_record& record) {
  return point_name(record.kind, record.layer, record.shard, record.shards);
}

// Throws usage_error, one line that names the point, when a record breaks what is said above.
void check(const tap_record& record);

}  // namespace reprise
