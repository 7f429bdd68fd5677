// `bench sdm`: what the sparse-delta-memory op and the layer around it cost, beside the bytes that
// they have to move.
//
// Times are of the host, from a call until the stream was synchronised. Everything is called in
// rounds, so that what disturbs the machine disturbs all; and checked against eager runs, bit for
// bit, before it is measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/measure/copy_rate.hpp"
#include "bench/measure/progress.hpp"
#include "bench/sdm/decode_costs.hpp"
#include "bench/sdm/growth_costs.hpp"
#include "bench/sdm/size_costs.hpp"
#include "reprise/device/device.hpp"

namespace reprise::bench {

struct sdm_bench_options {
  int rounds = 20;
  std::vector<std::string> sizes{};  // "small", "large"; none: as sizes_for says
  bool growth = true;
};

// All sizes on a GPU, the small one elsewhere.
std::vector<std::string> sizes_for(device_ref device);

struct sdm_bench_report {
  copy_rate copies;
  std::vector<std::string> measured;   // names of sizes
  std::vector<size_costs> sizes;       // in each of its chunks
  std::optional<decode_costs> decode;  // of the last size measured
  std::optional<growth_costs> growth;
  bool device_is_apart = false;  // its memory is not the host's

  std::vector<const op_counts*> ops() const;
  std::vector<const sdm_step_counts*> steps() const;
  // What the run promises of itself: all calls were answered as planned, with the bits of eager
  // runs. One line; empty when so.
  std::string failure() const;
};

// Throws usage_error on bad options before anything has run.
sdm_bench_report run_sdm_bench(device_ref device, const sdm_bench_options& options,
                               const progress& tell);

}  // namespace reprise::bench
