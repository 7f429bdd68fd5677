// Parts of a call that are measured apart, as steps: what takes whole banks, and how slots are
// found.
#pragma once

#include "bench/sdm/repeated_step.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::bench {

// Of a trained initial bank, which outlives them; bf16 banks and cotangents.
class bank_passes {
 public:
  bank_passes(pool& memory, stream_ref stream, const sdm_sizes& sizes, const parameter& initial);

 private:
  buffer<bf16> bank_;
  buffer<bf16> cotangent_;
  buffer<std::int32_t> rule_;

 public:
  repeated_step forward;   // the initial bank, made for each stream
  repeated_step backward;  // its cotangent zeroed, and summed into the parameter's gradient
};

// From random scores on; what is found is looked for again by the backward.
class addressing {
 public:
  // Slots are side * side.
  addressing(pool& memory, stream_ref stream, const sdm_sizes& sizes, std::int64_t side);

 private:
  struct half {  // writes, or reads
    buffer<float> first, second, val, dval, dfirst, dsecond;
    buffer<std::int32_t> idx;
    std::int64_t each;
  };
  static half make(pool& memory, stream_ref stream, const sdm_sizes& sizes, std::int64_t side,
                   std::int64_t each, int seed);

  half writes_;
  half reads_;

 public:
  repeated_step forward;   // product_key_top, for writes and for reads
  repeated_step backward;  // product_key_grad, likewise
};

}  // namespace reprise::bench
