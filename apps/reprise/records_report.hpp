// What `reprise records` says of a run: as text and as JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reprise/records/arrow/recorded_run.hpp"
#include "reprise/records/record_summary.hpp"

namespace reprise::app {

// A record without what it holds.
struct listed_record {
  explicit listed_record(const tap_record& record);

  std::uint64_t run, step, replay;
  std::string kind;
  int layer, shard, shards, shard_axis;
  record_content content;
  std::uint64_t request;
  std::int64_t first_row, rows, place;
  dtype type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes;
};

struct run_report {
  const recorded_run& run;
  bool lists = false;          // records are listed, rather than points
  std::uint64_t matching = 0;  // records that the filter took
  record_summary summary{};
  std::vector<listed_record> listed{};  // the first of them
  std::vector<std::string> written{};   // a line for each file
};

void print(std::FILE* to, const run_report& report);
nlohmann::json as_json(const run_report& report);

}  // namespace reprise::app
