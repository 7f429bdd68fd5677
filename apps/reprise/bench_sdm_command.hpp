// `reprise bench sdm`: what the sparse-delta-memory op and its layer cost, beside their floors.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_sdm(CLI::App& bench, int& exit_code);

}  // namespace reprise::app
