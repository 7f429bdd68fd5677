// The workload `denoise`: images from a small flow-matching model, several requests in turns, their
// steps recorded and replayed, their weights moved in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reprise/replay/cache.hpp"
#include "workloads/denoise/denoiser_config.hpp"
#include "workloads/denoise/sampler.hpp"

namespace reprise::denoise {

struct denoise_options {
  std::filesystem::path model;  // folder with config.json and safetensors
  std::vector<image_request> requests;
  std::int64_t weight_moves = 0;     // how often, spread evenly over the run
  std::vector<std::int64_t> sleeps;  // after so many steps of all, every recording is dropped
  bool eager = false;                // the plain run alone: one request after the other, no capture
  bool verify = true;                // a plain run as well, whose images are compared
};

// Host time of steps of the loop: from before the call until the result is there.
struct loop_times {
  double eager_us = 0;
  std::uint64_t eager_steps = 0;
  double replayed_us = 0;
  std::uint64_t replayed_steps = 0;
};

// Images of one request beside those of the plain run.
struct image_comparison {
  std::size_t unequal = 0;  // elements whose bits differ
  std::string first;        // where, and the two values; empty when all are equal
};

// Steps that ran eagerly by one rule, with the first reason in full.
struct explained {
  std::uint64_t steps = 0;
  std::string first;
};

struct denoise_report {
  denoiser_config config;
  std::vector<std::vector<float>> images;  // of each request: [images, pixels], on [-1, 1] or so
  step_counts counts;
  step_counts planned;
  std::optional<image_comparison> compared;
  loop_times times;        // of the run
  loop_times plain_times;  // of the plain run that it was compared with
  cache_report cache;      // what it holds at the end
  std::size_t weight_bytes = 0;
  std::map<std::string, explained> reasons;  // by rule

  // What the run promises of itself: the counts are the planned ones and no image differs. One
  // line; empty when the run is right.
  std::string failure() const;
};

// Told after each step of the loop: how many are done, and of how many.
using progress_listener = std::function<void(std::size_t done, std::size_t total)>;

// Runs all requests to their end. Throws usage_error on bad input before anything has run.
denoise_report run_denoise(device_ref device, const denoise_options& options,
                           const progress_listener& listen = {});

// What the cache must count when every step goes as it should.
step_counts planned_counts(const denoise_options& options);

// The order of a run: requests take turns, one step of the loop each, until all are finished. The
// weights are moved `moves` times in between, after equal parts of all steps.
void take_turns(std::span<const image_request> requests, std::int64_t moves,
                const std::function<void(std::size_t request)>& step,
                const std::function<void()>& move);

// Whether the recordings are dropped when so many steps of all are done.
bool sleeps_after(const denoise_options& options, std::int64_t steps);

// Steps of the loop that a request takes: an evaluation and a step along it for each step of time.
inline std::int64_t loop_steps(const image_request& asked) {
  return 2 * asked.steps;
}

}  // namespace reprise::denoise
