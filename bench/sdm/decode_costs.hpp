// One decoded token: the op's step alone, and the layer's, replayed one behind another.
#pragma once

#include <vector>

#include "bench/sdm/size_costs.hpp"

namespace reprise::bench {

inline constexpr int decode_replays_in_a_row = 100;

struct decode_costs {
  std::string name;  // of the shape
  sdm_sizes sizes;   // one token of one stream
  std::vector<sdm_figure> figures;
  std::vector<sdm_step_counts> steps;
};

decode_costs measure_decode(const sdm_tools& with, sdm_data& data);

}  // namespace reprise::bench
