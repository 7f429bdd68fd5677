// One size in one chunk: the op and the layer, replayed and eager, beside the parts that are not
// the op's own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/grad/subject.hpp"
#include "bench/sdm/bench_tools.hpp"
#include "bench/sdm/sdm_call.hpp"
#include "bench/sdm/sdm_figure.hpp"
#include "bench/sdm/sdm_shape.hpp"
#include "reprise/nn/parameters.hpp"

namespace reprise::bench {

// What an op took when it had been captured and replayed, beside its operands and parameters.
struct sdm_held {
  std::string what;
  std::size_t op_bytes = 0;      // graphed::bytes()
  std::size_t own_bytes = 0;     // slabs and pinned blocks that this library took for it
  std::size_t device_bytes = 0;  // by which the device's memory in use grew
};

struct size_costs {
  std::string name;
  sdm_sizes sizes;
  std::vector<sdm_figure> figures;
  std::vector<sdm_held> held;
  std::vector<op_counts> ops;
  std::vector<sdm_step_counts> steps;
};

// A shape with what its calls are made with, on the device: made once for all its chunks.
struct sdm_data {
  sdm_data(pool& memory, stream_ref stream, const sdm_shape& shape);

  parameter& bank() { return weights.at(std::string{layer_name} + ".bank"); }

  static constexpr const char* layer_name = "memory";
  sdm_shape shape;
  nn::parameter_set weights;  // of the layer; the op takes its bank
  sdm_call call;
};

size_costs measure_size(const sdm_tools& with, sdm_data& data, const sdm_chunk& chunk);

}  // namespace reprise::bench
