// `reprise bench train`: a training step by ever larger recordings, beside PyTorch where it is.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_train(CLI::App& bench, int& exit_code);

}  // namespace reprise::app
