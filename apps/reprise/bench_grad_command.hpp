// `reprise bench grad`: what replayed forwards and backwards cost, beside the bare launch.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_grad(CLI::App& bench, int& exit_code);

}  // namespace reprise::app
