// One call of the sparse-delta-memory op in plain doubles, one token at a time: the equations, and
// what the kernels of the chunked form are given of it, made by loops over events and rows. What
// the kernels' gradients are held to. Defined in plain_memory.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "reprise/sdm/sizes.hpp"

namespace reprise::test {

struct memory_call {
  sdm_sizes sizes;
  std::vector<std::int32_t> k_idx, q_idx;
  std::vector<double> bank, k_val, v, beta, g, q_val, dy, d_final;
};

struct call_options {
  std::uint64_t seed = 1;
  double strongest_decay = -1;  // g is between this and 0
  bool some_left_out = false;   // some indices are none of the stream's rows
};

// Every number is a float. Indices are distinct and ascend within a token.
memory_call random_call(const sdm_sizes& sizes, const call_options& options = {});

struct memory_run {
  std::vector<double> readings, errors, deltas, final_bank;
  std::vector<double> m;  // cotangents of the deltas
  std::vector<double> d_bank, dk, dv, dbeta, dg_by_write, dq;
  // By chunk, of all streams: the bank before it, and the bank's cotangent behind it.
  std::vector<std::vector<double>> bank_before, cotangent_behind;
};

memory_run in_doubles(const memory_call& call);

// sum of dy * readings and of d_final * the final bank.
double loss_of(const memory_call& call);

// The inputs of sdm_event_grads. What no kernel may look at is a NaN.
struct event_tables {
  std::vector<std::int32_t> order, place, runs;
  std::vector<double> level, of_state, of_cotangent, of_both, of_readings, of_errors;
};

event_tables tables_of(const memory_call& call, const memory_run& run);

struct event_gradients {
  std::vector<double> dk, dq, dg_by_write;
};

// The sums that gradients.hpp defines, each written out.
event_gradients by_definition(const memory_call& call, const event_tables& tables);

}  // namespace reprise::test
