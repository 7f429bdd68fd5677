// `bench decode`: decode steps, eager and replayed, against the bytes that a step has to read.
//
// A batch of requests is prefilled and then decoded by the workload's own runner, once with
// recording off and once with it on. A step is timed as the workload runs it: inputs staged, tokens
// brought back. Its floor is the time in which the device could read the weights and the keys and
// values, at the rate at which it copies its own memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/copy_rate.hpp"
#include "bench/measure/median_interval.hpp"
#include "bench/measure/progress.hpp"
#include "bench/measure/spread.hpp"
#include "reprise/device/device.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise::bench {

struct decode_bench_options {
  std::filesystem::path model;                  // folder with config.json and safetensors
  std::optional<std::filesystem::path> config;  // sizes alone; weights are drawn, as bf16
  std::vector<std::int64_t> batch_sizes{1, 32};
  std::int64_t tokens = 64;    // steps that are measured, for each batch size and way
  std::int64_t context = 128;  // tokens of each prompt, which the steps attend to
  // Points of which the last row of each request is taken, in every other step of a run of its own.
  std::optional<std::string> watch;
};

// One way of running the steps of one batch.
struct decode_way {
  spread step_us;
  step_counts counts;
  step_counts planned;

  bool as_planned() const;
};

// Replayed steps in pairs: one with points on, and its neighbour with none.
struct watched_decode {
  std::uint64_t points = 0;
  spread on_us;
  spread off_us;
  median_interval adds_us;  // of the differences within pairs
  decode_way steps;
  std::uint64_t records = 0;  // that came to a sink that counts
  std::uint64_t expected = 0;
  bool equal = false;  // the same tokens as the eager way
};

struct decode_row {
  std::int64_t batch = 0;
  decode_way eager;
  decode_way replayed;
  bool equal = false;  // both ways gave the same tokens
  std::optional<watched_decode> watched;
  std::size_t weight_bytes = 0;
  std::size_t kv_bytes = 0;  // keys and values that a step attends to, the mean of those measured
  double floor_us = 0;
};

struct decode_bench_report {
  std::vector<decode_row> rows;
  copy_rate copies;
  dtype weights = dtype::f32;

  // What the run promises of itself: the planned counts, and the same tokens both ways. One line;
  // empty when so.
  std::string failure() const;
};

// Throws usage_error on bad options or a bad model before anything has run.
decode_bench_report run_decode_bench(device_ref device, const decode_bench_options& options,
                                     const progress& tell);

}  // namespace reprise::bench
