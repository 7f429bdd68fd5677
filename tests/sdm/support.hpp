// Calls of the memory op for tests of its kernels: sizes, random arrays, and what they mean by
// plain loops over pairs of events.
//
// Values are such that f32 holds them. Indices ascend within a token, and prefer a few slots, so
// that most slots are met again within a chunk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/sdm/sizes.hpp"

namespace reprise::test {

struct sdm_case {
  std::string name;
  sdm_sizes sizes;
  std::vector<std::int32_t> k_idx, q_idx;
  std::vector<double> k_val, g, q_val, beta;
};

struct sdm_habits {
  double hot = 0.5;      // how often an index is one of as many slots as a token has events
  double decay = 0.5;    // decays are in (-decay, 0]
  bool strays = false;   // some indices are outside the stream's rows
  bool doubled = false;  // some are named twice
  std::uint64_t seed = 1;
};

sdm_case random_case(const std::string& name, const sdm_sizes& sizes, const sdm_habits& habits);

// One stream and several, chunks that divide the tokens, do not, are longer or one token, decays by
// token and by write, and each of the caller's mistakes.
std::vector<sdm_case> small_cases();
// With whole blocks of a GPU: 8,192 and 16,384 events in a chunk, more slots than 2^18, runs over
// all of a chunk.
std::vector<sdm_case> large_cases();

// One event of a chunk; row is -1 where it is left out.
struct plain_event {
  std::int64_t token = 0;  // of the chunk
  bool is_write = false;
  std::int64_t row = -1;
  double weight = 0;
  double level = 0;
};
// All events of chunk n of stream p.
std::vector<plain_event> plain_events(const sdm_case& of, std::int64_t p, std::int64_t n);

// The arrays of sdm_order, and the levels of sdm_weights.
struct chunk_orders {
  std::vector<std::int32_t> order, place, run_of, runs, rows, written;
};
chunk_orders plain_order(const sdm_case& of);
std::vector<double> plain_levels(const sdm_case& of);

template <class X>
std::vector<X> as(const std::vector<double>& values) {
  std::vector<X> out;
  out.reserve(values.size());
  for (const double value : values) out.push_back(static_cast<X>(value));
  return out;
}

template <class F>
void each_chunk(const sdm_sizes& sizes, F&& f) {
  for (std::int64_t p = 0; p < sizes.streams; ++p) {
    for (std::int64_t n = 0; n < sizes.chunks(); ++n) f(p, n);
  }
}

}  // namespace reprise::test
