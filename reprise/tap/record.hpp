// What a tap delivers, and the interface of what takes it: a mirror of the room `records`, so that
// this room builds before that one is there. Its headers take the place of this file.
//
// A record is a view: its text, shape and bytes belong to whoever hands it over, and are good
// during that call. A sink is called by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/base/dtype.hpp"
#include "reprise/base/ids.hpp"

namespace reprise {

// rows: rows of the tensor that was tapped. scores: what a probe made of each of them.
enum class record_content : std::uint8_t { rows, scores };

struct tap_record {
  std::uint64_t run = 0;   // of the process that recorded; its monitor chose the number
  std::uint64_t step = 0;  // of the run, from 0
  replay_id replay = replay_id::none;
  std::string_view kind;  // of the point: "resid_pre"
  int layer = -1;         // of the point; -1: the point belongs to no layer
  record_content content = record_content::rows;
  std::uint64_t request = 0;
  std::int64_t first_row = 0;  // the token of the request that the first row is of
  std::int64_t rows = 0;
  std::int64_t place = 0;  // of the request in its batch
  dtype type = dtype::f32;
  std::span<const std::int64_t> shape;  // row major; rows first
  std::span<const std::byte> bytes;
};

class record_sink {
 public:
  virtual ~record_sink() = default;
  virtual void open(std::string_view run) = 0;
  virtual void write(std::span<const tap_record> records) = 0;
  // What was taken so far is where a reader finds it when this returns.
  virtual void flush() = 0;
  virtual void close() = 0;
};

}  // namespace reprise
