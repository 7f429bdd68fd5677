// `bench train`: what a training step of a deep, narrow network takes, run eagerly and by
// recordings of ever larger parts of it.
//
// All ways are called in turn, so that what disturbs the machine disturbs all; each step is timed
// alone, from its first call until the device was done. The calls of the seam are counted, and all
// ways have to have the weights of the eager one at the end, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/grad/grad_figure.hpp"
#include "bench/measure/progress.hpp"
#include "bench/train/deep_net.hpp"
#include "bench/train/ways.hpp"
#include "reprise/device/counting.hpp"

namespace reprise::bench {

struct train_bench_options {
  std::vector<std::int64_t> batches{32, 512};
  std::int64_t layers = 24;
  std::int64_t width = 256;
  int steps = 50;  // that are measured
};

struct train_row {
  std::string way;
  grad_figure host;  // of a step's calls; its floor is a bare launch of the whole step's nodes
  spread step_us;    // until the device was done
  // Of step_us, judged on a card alone: at most so much, or at most so much over the whole step.
  std::optional<double> limit_us;
  bool limit_is_over_the_whole = false;
  bool equal = false;  // the weights are those of the eager way after all steps

  // Nothing where there is no limit.
  std::optional<bool> within(const spread& whole_us) const;
};

struct train_size {
  deep_shape shape;
  std::size_t weight_bytes = 0;  // of the parameters' values
  std::size_t moved_bytes = 0;   // of a step
  std::uint64_t nodes = 0;       // of the whole step's recording: what its launch has to start
  spread bare_us;                // a bare launch of so many small nodes, until the device was done
  std::vector<train_row> rows;

  const spread& whole_us() const;
};

struct train_bench_report {
  std::vector<train_size> sizes;
  bool bare = false;  // a bare launch was measured

  // What the run promises of itself: equal weights, and no call of the seam that was not planned.
  // One line; empty when so.
  std::string failure() const;
};

// `counts`: of the device, which was opened with them, and on which nobody else is at work. Throws
// usage_error on bad options before anything has run.
train_bench_report run_train_bench(device_ref device, const call_counts& counts,
                                   const train_bench_options& options, const progress& tell);

}  // namespace reprise::bench
