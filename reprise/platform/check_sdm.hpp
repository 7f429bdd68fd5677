// Holds the sparse-delta-memory op to cases with known results: forward and backward at each chunk
// size of a case, on a device in f32 and in bf16, and on the CPU in f64 too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/sdm/sizes.hpp"

namespace reprise {

// One call with its results, in f64; shapes in sdm/sizes.hpp. An empty d_final_bank is none.
struct sdm_case {
  std::string name;
  sdm_sizes sizes;  // chunk is not read
  std::vector<std::int64_t> chunks;

  std::vector<double> bank, k_val, v, beta, g, q_val;
  std::vector<std::int32_t> k_idx, q_idx;
  std::vector<double> dy, d_final_bank;

  std::vector<double> readings, final_bank;
  std::vector<double> d_bank, d_k_val, d_v, d_beta, d_g, d_q_val;
};

// How far one result is from what the case says.
struct sdm_error {
  std::string quantity;
  double absolute = 0;  // the largest
  double relative = 0;  // over the largest magnitude of the quantity; infinite where that is 0
};

struct sdm_run {
  std::string device;
  std::string name;     // of the case
  std::string storage;  // "f64", "f32", "bf16", or "bf16, f32 gradient"
  std::int64_t chunk = 0;
  double tolerance = 0;  // relative
  std::vector<sdm_error> errors;
  std::size_t not_rewound = 0;  // elements of the initial bank that came back with other bits

  bool within() const;
};

// 1e-9 of f64, 2e-5 of f32, 2e-2 of bf16.
std::vector<sdm_run> check_sdm(std::string_view device_spec, const std::vector<sdm_case>& cases);

}  // namespace reprise
