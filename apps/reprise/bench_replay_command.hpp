// `reprise bench replay`: what a replay adds to launching the same graph by hand.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_replay(CLI::App& bench, int& exit_code);

}  // namespace reprise::app
