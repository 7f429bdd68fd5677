// `reprise bench cache`: what a cache adds to the work it saves, and what filling and emptying it
// costs.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the bench below `bench`. `exit_code` becomes 1 when a run fails a check of its own.
void add_bench_cache(CLI::App& bench, int& exit_code);

}  // namespace reprise::app
