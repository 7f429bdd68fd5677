// `reprise bench train`: a training step by ever larger recordings, beside PyTorch where it is.
#pragma once

#include "apps/reprise/verb.hpp"

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_train(verb_ref bench, int& exit_code);

}  // namespace reprise::app
