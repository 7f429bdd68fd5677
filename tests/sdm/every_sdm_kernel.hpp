// A call or more of every kernel of the room sdm, for tests of all kernels.
#pragma once

#include "tests/sdm/chunk_calls.hpp"
#include "tests/sdm/every_addressing.hpp"
#include "tests/sdm/every_chunk_kernel.hpp"
#include "tests/sdm/every_gradient_kernel.hpp"

namespace reprise::test {

template <class Runner>
void run_every_sdm_kernel(Runner& with) {
  for (const sdm_case& one : small_cases()) {
    run_order_call(with, one);
    run_weights_call<float>(with, one);
    run_weights_call<double>(with, one);
    if (one.sizes.chunk == 1) continue;  // of one token there are no two to compare
    run_pairs_calls<float>(with, one);
    run_pairs_calls<double>(with, one);
  }
  run_every_chunk_kernel(with);
  run_every_gradient_kernel(with);
  run_addressing(with);
}

}  // namespace reprise::test
