// The workload `train`: a classifier of clothes that also says which pixels are clothes, trained
// with its trunk, its heads and its loss recorded and replayed, and compared with a plain run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/train/data.hpp"
#include "workloads/train/options.hpp"
#include "workloads/train/plan.hpp"
#include "workloads/train/schedule.hpp"
#include "workloads/train/training.hpp"

namespace reprise::train {

// Host time of windows: from before the first forward until the losses are there and the update is
// enqueued. Of all but the first window, which records.
struct window_times {
  double us = 0;
  std::uint64_t windows = 0;
};

struct epoch_result {
  float loss = 0;  // the mean over its windows
  evaluation validated;
  double seconds = 0;           // of its windows, making their batches included
  std::uint64_t overflows = 0;  // windows that were skipped
};

// With the plain run: where the two first differ; empty: nowhere.
struct run_comparison {
  std::uint64_t windows = 0;  // that were compared
  std::uint64_t epochs = 0;   // whose validation was
  std::string first;
};

struct train_report {
  std::int64_t images = 0;  // that were trained on
  std::int64_t validated = 0;
  std::size_t parameters = 0;
  std::vector<epoch_result> epochs;
  float scale = 0;  // of the loss, at the end
  std::vector<prediction> shown;
  run_counts counts;
  run_counts planned;
  std::optional<run_comparison> compared;
  std::string plain_differs;  // how the plain run beside did not run as planned; empty: it did
  window_times times;         // of the run
  window_times plain_times;   // of the plain run beside it
  std::size_t weight_bytes = 0;
  std::size_t recording_bytes = 0;

  // What the run promises of itself: the counts are the planned ones, and no bit differs from the
  // plain run's. One line; empty when the run is right.
  std::string failure() const;
};

// What has been done.
struct train_progress {
  std::int64_t epoch = 0;   // the one at hand, from 1
  std::int64_t window = 0;  // of it, from 1
  std::int64_t windows = 0;
  float loss = 0;  // of the window
};
// Told after each window, before it is compared.
using window_listener = std::function<void(const train_progress& done, training& trained)>;

// As many predictions are made for a picture at the end.
inline constexpr std::int64_t shown_images = 20;

// Throws usage_error on bad options or bad data before anything has run.
train_report run_train(device_ref device, const train_options& options,
                       const window_listener& listen = {});

struct image_sets {
  image_set train;
  image_set test;
};
// On these images, and by these epochs instead of the options'.
train_report run_train(device_ref device, const train_options& options, const image_sets& images,
                       std::span<const epoch> epochs, const window_listener& listen = {});

}  // namespace reprise::train
