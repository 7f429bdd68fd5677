// The workload `decode`: text from a Llama-style model, its decode steps recorded and replayed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/device/counting.hpp"
#include "reprise/device/device.hpp"
#include "reprise/replay/cache.hpp"
#include "workloads/decode/batching.hpp"
#include "workloads/decode/requests.hpp"
#include "workloads/decode/weights.hpp"

namespace reprise::decode {

struct decode_options {
  std::filesystem::path model;                         // folder with config.json and safetensors
  std::optional<std::filesystem::path> random_config;  // sizes alone; weights are drawn
  std::vector<std::vector<std::int32_t>> prompts;
  std::int64_t tokens = 96;
  sampling_options sampling;
  std::vector<std::int64_t> batch_sizes{1, 2, 4, 8};
  weight_storage weights = weight_storage::as_file;
  bool eager = false;
  bool verify = false;
};

struct decode_bytes {
  std::size_t weights = 0;
  std::size_t kv_cache = 0;
  cache_bytes replay;
  std::size_t total() const {
    return weights + kv_cache + replay.recordings + replay.eager + replay.verification;
  }
};

struct decode_report {
  std::vector<request> requests;
  step_counts counts;
  step_counts planned;
  std::optional<verification> verified;
  batch_times times;
  decode_bytes bytes;
  cache_report cache;
  dtype weights = dtype::f32;

  // What the run promises of itself: the counts are the planned ones, and no replay differed.
  bool as_planned() const;
  std::string failure() const;  // one line; empty when the run is right
};

// The configuration that a run with these options would use: the model's, or the sizes alone.
model_config config_of(const decode_options& options);

// What a run with this configuration marks.
std::vector<point> marked_points(const model_config& config);

// Runs all prompts to their end. `observer` (may be null) sees every mark; one whose works cannot
// be captured makes every step run eagerly. `rows` (may be empty) is told before each step whose
// rows it has. Throws usage_error on bad input before anything has run.
decode_report run_decode(device_ref device, const decode_options& options,
                         const token_listener& listen,
                         std::shared_ptr<mark_observer> observer = nullptr, row_listener rows = {});

}  // namespace reprise::decode
